// Implements the environment actor's part of a checkpoint.
#include "actors/roles/worker_file.hpp"

#include "replay/bytes.hpp"

namespace troupe::actors {

std::string worker_file_name(const std::string& node) { return node + ".state"; }

FileContent worker_file(const EnvironmentWorker& worker, const SendWindow& window,
                        const ShardRouter& router, const std::string& node) {
  std::vector<std::uint8_t> bytes, unacknowledged, routes, lanes;
  window.save(unacknowledged);
  window.save_lanes(lanes);
  router.save(routes);
  replay::ByteWriter writer(bytes);
  writer.array(std::span<const std::uint8_t>(worker.save()));
  writer.array(std::span<const std::uint8_t>(unacknowledged));
  writer.array(std::span<const std::uint8_t>(lanes));
  writer.array(std::span<const std::uint8_t>(routes));
  return {worker_file_name(node), std::move(bytes)};
}

Result<void> load_worker(EnvironmentWorker& worker, SendWindow& window, ShardRouter& router,
                         const std::filesystem::path& directory, const std::string& node) {
  const auto path = directory / worker_file_name(node);
  const auto bytes = read_file(path);
  if (!bytes) return tl::unexpected(bytes.error());
  std::vector<std::uint8_t> state, unacknowledged, lanes, routes;
  replay::ByteReader reader(*bytes);
  bool complete = reader.array(state) && reader.array(unacknowledged);
  // Without its last two arrays it is of a run whose actors had one shard each.
  const bool routed = complete && !reader.finished();
  if (routed) complete = reader.array(lanes) && reader.array(routes);
  complete = complete && reader.finished();
  Result<void> loaded =
      complete ? worker.load(state)
                     .and_then([&] { return window.load(unacknowledged, lanes); })
                     .and_then([&] { return routed ? router.load(routes) : Result<void>{}; })
               : Result<void>(fail(ErrorCode::kCorrupt, "it is cut short or too long"));
  if (!loaded) return fail(loaded.error().code, path.string() + ": " + loaded.error().message);
  return {};
}

}  // namespace troupe::actors
