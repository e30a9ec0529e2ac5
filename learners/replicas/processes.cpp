// Implements the choice of transport.
#include "learners/replicas/processes.hpp"

#include "learners/collectives/gloo.hpp"
#include "learners/collectives/shared_memory.hpp"

namespace troupe::learners {
namespace {

Result<std::unique_ptr<Exchange>> connect_shared(RendezvousClient& rendezvous, int rank, int size,
                                                 std::chrono::milliseconds timeout) {
  std::shared_ptr<SharedRegion> region;
  if (rank == 0) {
    Result<std::shared_ptr<SharedRegion>> made = SharedRegion::create(size);
    if (!made) return tl::unexpected(made.error());
    region = *std::move(made);
    const std::string handle = region->handle();
    if (Result<void> told = rendezvous.set("memory", {handle.begin(), handle.end()}); !told)
      return tl::unexpected(told.error());
  } else {
    const Result<std::vector<std::uint8_t>> handle = rendezvous.get("memory", timeout);
    if (!handle) return tl::unexpected(handle.error());
    Result<std::shared_ptr<SharedRegion>> opened =
        SharedRegion::open({handle->begin(), handle->end()});
    if (!opened) return tl::unexpected(opened.error());
    region = *std::move(opened);
    if (region->ranks() != size)
      return fail(ErrorCode::kInvalidArgument, "The shared memory is for " +
                                                   std::to_string(region->ranks()) +
                                                   " processes, not " + std::to_string(size) + ".");
  }
  return make_shared_memory_exchange(std::move(region), rank, timeout);
}

}  // namespace

Result<std::unique_ptr<Exchange>> connect(const Processes& processes,
                                          const ReplicationOptions& options,
                                          const std::string& group, int rank, int size) {
  if (options.transport == "links") {
    if (!processes.links)
      return fail(ErrorCode::kInvalidArgument, "The transport 'links' was given no links.");
    return processes.links(group, rank, size);
  }
  if (!processes.rendezvous)
    return fail(ErrorCode::kInvalidArgument, "Several processes need a rendezvous.");
  auto rendezvous = std::make_shared<RendezvousClient>(
      processes.rendezvous, processes.name + "/" + group + "/", options.timeout);
  if (options.transport == "shared_memory")
    return connect_shared(*rendezvous, rank, size, options.timeout);
  if (options.transport == "gloo")
    return make_gloo_exchange(std::move(rendezvous), rank, size, {.timeout = options.timeout});
  return fail(ErrorCode::kInvalidArgument, "There is no transport '" + options.transport +
                                               "'; there are shared_memory, gloo and links.");
}

}  // namespace troupe::learners
