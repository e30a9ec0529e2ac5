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
  const bool complete = reader.array(state) && reader.array(unacknowledged) &&
                        reader.array(lanes) && reader.array(routes) && reader.finished();
  // The worker last, which changes only once nothing else can fail.
  SendWindow restored_window = window;
  ShardRouter restored_router = router;
  const Result<void> loaded =
      complete ? restored_window.load(unacknowledged, lanes)
                     .and_then([&] { return restored_router.load(routes); })
                     .and_then([&] { return worker.load(state); })
               : Result<void>(fail(ErrorCode::kCorrupt, "it is cut short or too long"));
  if (!loaded) return fail(loaded.error().code, path.string() + ": " + loaded.error().message);
  window = std::move(restored_window);
  router = std::move(restored_router);
  return {};
}

}  // namespace troupe::actors
