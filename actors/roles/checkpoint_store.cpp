// Implements the run directory's checkpoints.
#include "actors/roles/checkpoint_store.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "actors/roles/file_sum.hpp"
#include "replay/checksum.hpp"

namespace troupe::actors {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr int kFormat = 2;
constexpr const char* kManifest = "manifest.json";
constexpr const char* kState = "state.json";

std::string directory_name(std::uint64_t actor_steps) {
  char name[64];
  std::snprintf(name, sizeof name, "step_%09llu", static_cast<unsigned long long>(actor_steps));
  return name;
}

std::vector<fs::path> subdirectories(const fs::path& root) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error))
    if (entry.is_directory() && !entry.is_symlink() &&
        entry.path().filename().string().starts_with("step_"))
      found.push_back(entry.path());
  return found;
}

// A manifest's last key is the checksum of the text before it, so that no change of it goes
// unnoticed.
constexpr const char* kSumKey = ",\n  \"crc32c\": ";

std::string sealed(std::string text) {
  text.resize(text.rfind("\n}"));
  const std::uint32_t sum =
      replay::crc32c({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return text + kSumKey + std::to_string(sum) + "\n}";
}

bool is_sealed(const std::string& text) {
  const auto key = text.rfind(kSumKey);
  return key != std::string::npos && sealed(text.substr(0, key) + "\n}") == text;
}

Result<void> verify_file(const fs::path& directory, const Json& file) {
  const fs::path path = directory / file.at("path").get<std::string>();
  const auto sum = sum_of_file(path);
  if (!sum) return fail(ErrorCode::kCorrupt, sum.error().message);
  const auto bytes = file.at("bytes").get<std::uint64_t>();
  if (sum->bytes != bytes)
    return fail(ErrorCode::kCorrupt, path.string() + " has " + std::to_string(sum->bytes) +
                                         " bytes where its manifest says " + std::to_string(bytes));
  if (sum->crc32c != file.at("crc32c").get<std::uint32_t>())
    return fail(ErrorCode::kCorrupt, path.string() + " does not have its manifest's checksum");
  return {};
}

}  // namespace

Result<void> write_parts(std::span<const FileContent> files, const fs::path& directory,
                         std::vector<FilePart>& parts) {
  if (auto written = write_files(directory, files); !written) return written;
  for (const FileContent& file : files)
    parts.push_back({file.name, file.bytes.size(), replay::crc32c(file.bytes)});
  return {};
}

Result<CheckpointInfo> read_checkpoint(const fs::path& directory, bool verify) {
  const auto text = read_text(directory / kManifest);
  if (!text) return tl::unexpected(text.error());
  try {
    const Json manifest = Json::parse(*text);
    if (manifest.at("format").get<int>() != kFormat)
      return fail(ErrorCode::kCorrupt, (directory / kManifest).string() + " has format " +
                                           manifest.at("format").dump() + ", this program reads " +
                                           std::to_string(kFormat));
    if (!is_sealed(*text))
      return fail(ErrorCode::kCorrupt,
                  (directory / kManifest).string() + " does not have its own checksum");
    if (verify)
      for (const Json& file : manifest.at("files"))
        if (auto good = verify_file(directory, file); !good) return tl::unexpected(good.error());
    auto state = read_text(directory / kState);
    if (!state) return tl::unexpected(state.error());
    return CheckpointInfo{directory, manifest.at("sequence").get<std::uint64_t>(),
                          manifest.at("actor_steps").get<std::uint64_t>(),
                          manifest.at("version").get<std::uint64_t>(), *state};
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kCorrupt, (directory / kManifest).string() + ": " + error.what());
  }
}

Result<CheckpointStore> CheckpointStore::open(fs::path root, std::int64_t keep,
                                              const std::function<void(const std::string&)>& log) {
  std::error_code error;
  fs::create_directories(root, error);
  if (error) return fail(ErrorCode::kIo, "cannot create " + root.string() + ": " + error.message());
  CheckpointStore store(std::move(root), keep);
  for (const fs::path& directory : subdirectories(store.root_)) {
    if (!fs::exists(directory / kManifest)) {
      log("removing the unfinished checkpoint " + directory.string());
      fs::remove_all(directory, error);
    } else if (const auto info = read_checkpoint(directory, false)) {
      store.next_sequence_ = std::max(store.next_sequence_, info->sequence + 1);
    }
  }
  return store;
}

std::optional<CheckpointInfo> CheckpointStore::newest_valid(
    const std::function<void(const std::string&)>& log) const {
  std::vector<CheckpointInfo> found;
  for (const fs::path& directory : subdirectories(root_)) {
    if (auto info = read_checkpoint(directory, false))
      found.push_back(std::move(*info));
    else
      log("the checkpoint " + directory.string() + " is passed over: " + info.error().message);
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.sequence > b.sequence; });
  for (CheckpointInfo& info : found) {
    const auto good = read_checkpoint(info.directory, true);
    if (good) return info;
    log("the checkpoint " + info.directory.string() + " is passed over: " + good.error().message);
  }
  return std::nullopt;
}

Result<fs::path> CheckpointStore::begin(std::uint64_t id, std::uint64_t actor_steps) {
  std::string name = directory_name(actor_steps);
  for (int again = 2; fs::exists(root_ / name); ++again)
    name = directory_name(actor_steps) + "_" + std::to_string(again);
  std::error_code error;
  fs::create_directory(root_ / name, error);
  if (error)
    return fail(ErrorCode::kIo,
                "cannot create " + (root_ / name).string() + ": " + error.message());
  open_[id] = Open{root_ / name, actor_steps, {}};
  return root_ / name;
}

void CheckpointStore::add_part(std::uint64_t id, const std::vector<FilePart>& files) {
  const auto open = open_.find(id);
  if (open != open_.end())
    open->second.files.insert(open->second.files.end(), files.begin(), files.end());
}

bool CheckpointStore::empty() const { return subdirectories(root_).empty(); }

void CheckpointStore::set_actor_steps(std::uint64_t id, std::uint64_t actor_steps) {
  const auto open = open_.find(id);
  if (open != open_.end()) open->second.actor_steps = actor_steps;
}

Result<CheckpointInfo> CheckpointStore::commit(std::uint64_t id, std::uint64_t version,
                                               const std::string& state_json) {
  const auto found = open_.find(id);
  if (found == open_.end()) return fail(ErrorCode::kInternal, "no such open checkpoint");
  const Open open = found->second;
  const auto give_up = [&](const Error& error) {
    abandon(id);
    return tl::unexpected(error);
  };
  if (auto written = write_file(open.directory / kState, state_json); !written)
    return give_up(written.error());
  Json files = Json::array();
  for (const FilePart& part : open.files)
    files.push_back({{"path", part.path}, {"bytes", part.bytes}, {"crc32c", part.crc32c}});
  const auto state_sum = sum_of_file(open.directory / kState);
  if (!state_sum) return give_up(state_sum.error());
  files.push_back({{"path", kState}, {"bytes", state_sum->bytes}, {"crc32c", state_sum->crc32c}});
  const CheckpointInfo info{open.directory, next_sequence_++, open.actor_steps, version,
                            state_json};
  const Json manifest = {{"format", kFormat},
                         {"sequence", info.sequence},
                         {"actor_steps", info.actor_steps},
                         {"version", info.version},
                         {"files", files}};
  if (auto written = write_file(open.directory / kManifest, sealed(manifest.dump(2))); !written)
    return give_up(written.error());
  open_.erase(id);
  newest_ = info;

  // A symbolic link cannot be replaced in place: make another and rename it over.
  std::error_code error;
  const fs::path fresh = root_ / "latest.tmp";
  fs::remove(fresh, error);
  fs::create_directory_symlink(info.directory.filename(), fresh, error);
  if (!error) fs::rename(fresh, root_ / "latest", error);
  prune();
  return info;
}

void CheckpointStore::abandon(std::uint64_t id) {
  const auto open = open_.find(id);
  if (open == open_.end()) return;
  std::error_code error;
  fs::remove_all(open->second.directory, error);
  open_.erase(open);
}

void CheckpointStore::hold(const std::string& reader) {
  if (newest_) held_[reader] = newest_->directory;
}

void CheckpointStore::release(const std::string& reader) { held_.erase(reader); }

void CheckpointStore::prune() {
  std::vector<CheckpointInfo> complete;
  for (const fs::path& directory : subdirectories(root_))
    if (auto info = read_checkpoint(directory, false)) complete.push_back(std::move(*info));
  std::sort(complete.begin(), complete.end(),
            [](const auto& a, const auto& b) { return a.sequence > b.sequence; });
  std::error_code error;
  for (std::size_t i = static_cast<std::size_t>(keep_); i < complete.size(); ++i) {
    if (std::any_of(held_.begin(), held_.end(), [&](const auto& held) {
          return held.second.filename() == complete[i].directory.filename();
        }))
      continue;
    // Without its manifest first: a crash in between leaves an unfinished one, not a broken one.
    fs::remove(complete[i].directory / kManifest, error);
    fs::remove_all(complete[i].directory, error);
  }
}

}  // namespace troupe::actors
