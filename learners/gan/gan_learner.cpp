#include "learners/gan/gan_learner.hpp"

#include <array>
#include <utility>

#include "learners/checkpoint_files.hpp"
#include "learners/data/picture_columns.hpp"
#include "learners/supervised/set_arrays.hpp"
#include "models/kept_memory.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

using Json = nlohmann::json;

constexpr const char* kAlgorithm = "sngan";
// Options that give the stored arrays their shape and meaning.
constexpr std::array kFixedOptions = {"conditional", "noise", "generator_width",
                                      "discriminator_width"};

std::span<const float> floats(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

at::Tensor view_of(std::vector<float>& values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat);
}

// The two networks under the names of their arrays in a checkpoint.
struct Named {
  std::string prefix;
  const models::ArrayList& arrays;
  GanReplica::Side& side;
};

std::vector<Named> sides_of(GanReplica& replica, const models::Generator& generator,
                            const models::Discriminator& discriminator) {
  return {{"generator.", generator.arrays(), replica.generator()},
          {"discriminator.", discriminator.arrays(), replica.discriminator()}};
}

}  // namespace

Result<std::unique_ptr<GanLearner>> GanLearner::create(const GanOptions& options,
                                                       const LearnerOptions& placement,
                                                       const PictureSpec& pictures,
                                                       const LearnerContext& context) {
  models::keep_tensor_memory();
  if (auto good = check(options, placement.replicas, pictures.side); !good)
    return tl::unexpected(good.error());
  if (auto good = check(shape_of(options, pictures)); !good) return tl::unexpected(good.error());
  std::unique_ptr<GanLearner> learner(new GanLearner(options, placement, pictures, context));
  if (auto made = learner->make_replicas(); !made) return tl::unexpected(made.error());
  return learner;
}

GanLearner::GanLearner(const GanOptions& options, const LearnerOptions& placement,
                       const PictureSpec& pictures, const LearnerContext& context)
    : options_(options),
      placement_(placement),
      pictures_(pictures),
      context_(context),
      generator_(shape_of(options, pictures)),
      discriminator_(shape_of(options, pictures)),
      replicas_(static_cast<std::size_t>(placement.replicas)),
      totals_(static_cast<std::size_t>(placement.replicas)),
      team_(placement_, pictures_) {}

Result<void> GanLearner::make_replicas() {
  if (auto formed = team_.form({}); !formed) return formed;
  return team_.step([&](int i, ReplicaContext&) -> Result<void> {
    replicas_[static_cast<std::size_t>(i)] = std::make_unique<GanReplica>(
        generator_, discriminator_, options_, pictures_, context_.seed);
    return {};
  });
}

Result<void> GanLearner::join(const LearnerGroup& group) {
  if (options_.generator_batch < group.size * replicas())
    return fail(ErrorCode::kInvalidArgument,
                "generator_batch " + std::to_string(options_.generator_batch) +
                    " cannot be divided over " + std::to_string(group.size) + " learners of " +
                    std::to_string(replicas()) + " replicas.");
  if (auto formed = team_.form(group); !formed) return formed;
  const std::uint64_t discriminator_steps = replicas_.front()->discriminator().steps;
  PictureTeam::States states{.updates = version(),
                             .equal = {},
                             .own = {},
                             .counters = {static_cast<std::int64_t>(discriminator_steps)}};
  std::vector<std::vector<at::Tensor>> buffers;  // [replica]: of both networks
  for (const auto& replica : replicas_) {
    states.equal.emplace_back();
    buffers.emplace_back();
    for (GanReplica::Side* side : {&replica->generator(), &replica->discriminator()}) {
      states.equal.back().insert(
          states.equal.back().end(),
          {side->arrays.parameters().values(), view_of(side->first), view_of(side->second)});
      const std::vector<at::Tensor>& own = side->arrays.buffers();
      buffers.back().insert(buffers.back().end(), own.begin(), own.end());
    }
  }
  for (std::vector<at::Tensor>& own : buffers) states.own.push_back(&own);
  if (auto agreed = team_.agree(states); !agreed) {
    team_.disband();
    return agreed;
  }
  for (std::size_t r = 0; r < replicas_.size(); ++r) {
    GanReplica::Side &generator = replicas_[r]->generator(),
                     &discriminator = replicas_[r]->discriminator();
    const auto middle =
        buffers[r].begin() + static_cast<std::ptrdiff_t>(generator.arrays.buffers().size());
    generator.arrays.buffers().assign(buffers[r].begin(), middle);
    discriminator.arrays.buffers().assign(middle, buffers[r].end());
    generator.steps = states.updates;
    discriminator.steps = static_cast<std::uint64_t>(states.counters.front());
  }
  context_.epoch = group.generation;
  return {};
}

std::vector<Column> GanLearner::batch_columns() const {
  return data::picture_columns(pictures_.side, pictures_.channels);
}

Result<UpdateReport> GanLearner::update(const replay::Batch& batch) {
  const auto given = picture_rows(batch, pictures_);
  if (!given) return tl::unexpected(given.error());
  const PictureRows& rows = *given;
  if (rows.count < 1) return fail(ErrorCode::kInvalidArgument, "The batch has no pictures.");
  const Result<void> updated = team_.step([&](int i, ReplicaContext& context) {
    const auto index = static_cast<std::size_t>(i);
    return replicas_[index]
        ->update(context, team_.part_of(rows, i))
        .map([&](const GanTotals& totals) { totals_[index] = totals; });
  });
  if (!updated) return tl::unexpected(updated.error());
  UpdateReport report;
  report.version = version();
  if (report.compared = team_.compares(version()); report.compared)
    if (auto equal = team_.compare(version(), [&](int i) { return state_hash(i); }); !equal)
      return tl::unexpected(equal.error());
  if (version() % static_cast<std::uint64_t>(placement_.metrics_every) == 0) {
    const GanTotals& totals = totals_.front();  // equal on every replica
    report.metrics = {{"loss/discriminator", totals.discriminator_loss},
                      {"loss/generator", totals.generator_loss},
                      {"score/real", totals.real_score},
                      {"score/fake", totals.fake_score},
                      {"learning_rate", totals.learning_rate}};
  }
  return report;
}

models::ParameterSetPtr GanLearner::parameters() const {
  auto set = std::make_shared<models::ParameterSet>();
  set->learner_epoch = context_.epoch;
  set->version = version();
  const models::ImageArrays& arrays = replicas_.front()->generator().arrays;
  put_arrays(*set, generator_.arrays(), floats(arrays.parameters().values()), arrays);
  return set;
}

Result<std::vector<FileContent>> GanLearner::snapshot() const {
  NamedArrays parameters, optimizer;
  std::vector<at::Tensor> held;
  std::vector<std::uint64_t> steps;
  for (std::size_t r = 0; r < replicas_.size(); ++r)
    for (const Named& named : sides_of(*replicas_[r], generator_, discriminator_)) {
      add_buffers(r == 0 ? parameters : optimizer, of_replica(r) + named.prefix, named.arrays,
                  named.side.arrays, held);
      if (r > 0) continue;
      const models::FlatLayout& layout = named.arrays.layout();
      add_flat(parameters, layout, floats(named.side.arrays.parameters().values()), named.prefix);
      add_flat(optimizer, layout, named.side.first, "first." + named.prefix);
      add_flat(optimizer, layout, named.side.second, "second." + named.prefix);
      steps.push_back(named.side.steps);
    }
  const Json content = {{"updates", steps[0]},
                        {"discriminator_steps", steps[1]},
                        {"classes", pictures_.classes},
                        {"side", pictures_.side},
                        {"channels", pictures_.channels},
                        {"replicas", replicas()},
                        {"options", options_json(options_)}};
  return encode_learner_files(kAlgorithm, content, parameters, optimizer);
}

Result<void> GanLearner::load(const std::filesystem::path& directory) try {
  const auto files = read_learner_files(directory, kAlgorithm);
  if (!files) return tl::unexpected(files.error());
  const Json& content = files->content;
  if (auto same =
          same_options(content.at("options"), options_json(options_), kFixedOptions, "sngan");
      !same)
    return same;
  const std::string parameter_file = (directory / kParametersFile).string();
  const std::string optimizer_file = (directory / kOptimizerFile).string();
  const auto saved_replicas = content.at("replicas").get<std::size_t>();
  const std::array<std::uint64_t, 2> steps = {
      content.at("updates").get<std::uint64_t>(),
      content.at("discriminator_steps").get<std::uint64_t>()};
  struct Loaded {
    std::vector<float> values, first, second;
    std::vector<std::vector<at::Tensor>> buffers;  // [replica]
  };
  std::array<Loaded, 2> loaded;
  const auto sides = sides_of(*replicas_.front(), generator_, discriminator_);
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const models::FlatLayout& layout = sides[s].arrays.layout();
    const std::string& prefix = sides[s].prefix;
    auto taken = take_flat(files->parameters, parameter_file, layout, loaded[s].values, prefix);
    if (taken)
      taken =
          take_flat(files->optimizer, optimizer_file, layout, loaded[s].first, "first." + prefix);
    if (taken)
      taken =
          take_flat(files->optimizer, optimizer_file, layout, loaded[s].second, "second." + prefix);
    if (!taken) return taken;
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      auto buffers = take_buffers(*files, r, saved_replicas, prefix, sides[s].arrays);
      if (!buffers) return tl::unexpected(buffers.error());
      loaded[s].buffers.push_back(*std::move(buffers));
    }
  }
  // Nothing below can fail.
  for (std::size_t r = 0; r < replicas_.size(); ++r) {
    const auto own = sides_of(*replicas_[r], generator_, discriminator_);
    for (std::size_t s = 0; s < own.size(); ++s) {
      GanReplica::Side& side = own[s].side;
      std::copy(loaded[s].values.begin(), loaded[s].values.end(),
                side.arrays.parameters().values().mutable_data_ptr<float>());
      side.arrays.buffers() = loaded[s].buffers[r];
      side.first = loaded[s].first;
      side.second = loaded[s].second;
      side.steps = steps[s];
    }
  }
  return {};
} catch (const Json::exception& error) {
  return corrupt_manifest(directory, error);
}

}  // namespace troupe::learners
