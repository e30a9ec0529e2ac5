// Implements the environment actor's part of a checkpoint.
#include "actors/roles/worker_file.hpp"

#include "replay/bytes.hpp"

namespace troupe::actors {

std::string worker_file_name(const std::string& node) { return node + ".state"; }

FileContent worker_file(const EnvironmentWorker& worker, const SendWindow& window,
                        const std::string& node) {
  std::vector<std::uint8_t> bytes, unacknowledged;
  window.save(unacknowledged);
  replay::ByteWriter writer(bytes);
  writer.array(std::span<const std::uint8_t>(worker.save()));
  writer.array(std::span<const std::uint8_t>(unacknowledged));
  return {worker_file_name(node), std::move(bytes)};
}

Result<void> load_worker(EnvironmentWorker& worker, SendWindow& window,
                         const std::filesystem::path& directory, const std::string& node) {
  const auto path = directory / worker_file_name(node);
  const auto bytes = read_file(path);
  if (!bytes) return tl::unexpected(bytes.error());
  std::vector<std::uint8_t> state, unacknowledged;
  replay::ByteReader reader(*bytes);
  const bool complete = reader.array(state) && reader.array(unacknowledged) && reader.finished();
  Result<void> loaded =
      complete ? worker.load(state).and_then([&] { return window.load(unacknowledged); })
               : Result<void>(fail(ErrorCode::kCorrupt, "it is cut short"));
  if (!loaded) return fail(loaded.error().code, path.string() + ": " + loaded.error().message);
  return {};
}

}  // namespace troupe::actors
