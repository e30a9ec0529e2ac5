// Finds the tables of a run, and opens them with what their own files say.
#include "actors/cli/replay_source.hpp"

#include <algorithm>
#include <system_error>

#include "actors/config/reader.hpp"
#include "envs/registry.hpp"
#include "replay/checkpoint.hpp"

namespace troupe::actors::cli {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> tables_in(const fs::path& checkpoint) {
  std::vector<fs::path> tables;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoint, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("replay-") && name.ends_with(".table")) tables.push_back(entry.path());
  }
  // By number: replay-10 comes after replay-9.
  std::sort(tables.begin(), tables.end(), [](const fs::path& a, const fs::path& b) {
    const std::string left = a.filename().string(), right = b.filename().string();
    return std::pair(left.size(), left) < std::pair(right.size(), right);
  });
  return tables;
}

}  // namespace

Result<ReplaySource> find_tables(const fs::path& path) {
  ReplaySource source;
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    source.tables = {path};
    return source;
  }
  if (!fs::is_directory(path, error))
    return fail(ErrorCode::kNotFound, "there is no " + path.string());
  const fs::path latest = path / "checkpoints" / "latest";
  const bool is_run = fs::exists(path / "checkpoints", error);
  if (is_run && !fs::exists(latest / "manifest.json", error))
    return fail(ErrorCode::kNotFound, "the run " + path.string() + " has no checkpoint yet");
  const fs::path checkpoint = is_run ? latest : path;
  if (!fs::exists(checkpoint / "manifest.json", error))
    return fail(ErrorCode::kNotFound, path.string() +
                                          " is neither a run, nor a complete checkpoint, nor a "
                                          "table's file");
  source.tables = tables_in(checkpoint);
  if (source.tables.empty())
    return fail(ErrorCode::kNotFound,
                "the checkpoint " + fs::canonical(checkpoint, error).string() +
                    " holds no table; the run was saved with checkpoint.replay: false");
  const fs::path config =
      fs::canonical(checkpoint, error).parent_path().parent_path() / "config.yaml";
  if (!fs::exists(config, error)) return source;
  const auto loaded = load_config(config);
  if (!loaded) return tl::unexpected(loaded.error());
  source.environment = loaded->options.environment.name;
  source.time_limit = loaded->options.environment.time_limit;
  return source;
}

Result<EnvSpec> spec_of(const std::string& environment, std::int64_t time_limit) {
  const auto env = envs::make_env(environment, {.time_limit = time_limit});
  if (!env) return tl::unexpected(env.error());
  return (*env)->spec();
}

Result<std::unique_ptr<replay::Table>> load_table(const fs::path& path) {
  const auto signature = replay::read_signature(path);
  if (!signature) return tl::unexpected(signature.error());
  auto snapshot = replay::read_checkpoint(path, *signature);
  if (!snapshot) return tl::unexpected(snapshot.error());
  auto table = replay::Table::create(snapshot->options, *signature);
  if (!table) return fail(ErrorCode::kCorrupt, path.string() + ": " + table.error().message);
  if (auto adopted = (*table)->adopt(*std::move(snapshot)); !adopted)
    return fail(adopted.error().code, path.string() + ": " + adopted.error().message);
  return table;
}

int exit_code_of(const Error& error) {
  return error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kNotFound ? 2 : 1;
}

}  // namespace troupe::actors::cli
