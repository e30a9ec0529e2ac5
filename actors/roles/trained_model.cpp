// Finds a checkpoint and loads it.
#include "actors/roles/trained_model.hpp"

#include <nlohmann/json.hpp>
#include <system_error>

#include "actors/config/checks.hpp"
#include "actors/config/reader.hpp"
#include "actors/roles/checkpoint_store.hpp"
#include "learners/loader.hpp"

namespace troupe::actors {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

Result<fs::path> find_checkpoint(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return fail(ErrorCode::kNotFound, "there is no directory " + path.string());
  const bool is_run = fs::exists(path / "checkpoints", error);
  const fs::path checkpoint =
      fs::weakly_canonical(is_run ? path / "checkpoints" / "latest" : path, error);
  if (fs::exists(checkpoint / "manifest.json", error)) return checkpoint;
  return fail(ErrorCode::kNotFound,
              is_run ? "the run " + path.string() + " has no checkpoint yet"
                     : path.string() + " is neither a run nor a complete checkpoint");
}

Result<Json> read_json(const fs::path& path) {
  const auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  auto json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return fail(ErrorCode::kCorrupt, path.string() + " is no JSON object");
  return json;
}

// What the checkpoint says of the pictures, so that the data set itself is not needed.
Result<void> read_pictures(TrainedModel& found) try {
  const auto learner = read_json(found.checkpoint / "learner.json");
  if (!learner) return tl::unexpected(learner.error());
  const Json& content = learner->at("content");
  found.pictures = {.side = content.at("side").get<std::int64_t>(),
                    .channels = content.at("channels").get<std::int64_t>(),
                    .classes = content.at("classes").get<std::int64_t>()};
  const auto names = read_json(found.checkpoint / "classes.json");
  if (!names) return tl::unexpected(names.error());
  found.classes = names->at("classes").get<std::vector<std::string>>();
  if (static_cast<std::int64_t>(found.classes.size()) == found.pictures.classes) return {};
  return fail(ErrorCode::kCorrupt, "the checkpoint " + found.checkpoint.string() + " names " +
                                       std::to_string(found.classes.size()) + " classes of " +
                                       std::to_string(found.pictures.classes));
} catch (const Json::exception& error) {
  return fail(ErrorCode::kCorrupt,
              "the checkpoint " + found.checkpoint.string() + " cannot be read: " + error.what());
}

Result<void> read_parameters(TrainedModel& found) {
  const auto factory = learners::load_learning_library();
  if (!factory) return tl::unexpected(factory.error());
  auto learner = (*factory)(
      found.options.job, found.options.learners.learner,
      {.spec = {}, .seed = 0, .epoch = 0, .deterministic = false, .pictures = found.pictures});
  if (!learner) return tl::unexpected(learner.error());
  if (auto loaded = (*learner)->load(found.checkpoint); !loaded) return loaded;
  found.parameters = (*learner)->parameters();
  return {};
}

}  // namespace

Result<TrainedModel> load_trained(const fs::path& path, const std::string& job) {
  TrainedModel found;
  auto checkpoint = find_checkpoint(path);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  found.checkpoint = std::move(*checkpoint);
  if (const auto good = read_checkpoint(found.checkpoint, true); !good)
    return tl::unexpected(good.error());
  const auto config = load_config(found.checkpoint.parent_path().parent_path() / "config.yaml");
  if (!config) return tl::unexpected(config.error());
  found.options = config->options;
  if (found.options.job != job)
    return fail(ErrorCode::kInvalidArgument,
                path.string() + " is a run of the job " + found.options.job + ", not of " + job);
  // A schedule that ends with the run says nothing here.
  schedule_of(found.options).decay = "constant";
  if (auto read = read_pictures(found); !read) return tl::unexpected(read.error());
  if (auto read = read_parameters(found); !read) return tl::unexpected(read.error());
  return found;
}

}  // namespace troupe::actors
