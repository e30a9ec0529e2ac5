// Implements the rounds.
#include "learners/replicas/local_replicas.hpp"

#include <ATen/Parallel.h>

#include <algorithm>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

Result<void> guarded(const LocalReplicas::Work& work, int index, ReplicaContext& context) {
  try {
    return work(index, context);
  } catch (const CollectiveError& error) {
    return tl::unexpected(error.error());
  } catch (const c10::Error& error) {
    return fail(ErrorCode::kInternal, "Replica " + std::to_string(context.id()) +
                                          " failed: " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInternal,
                "Replica " + std::to_string(context.id()) + " failed: " + error.what());
  }
}

}  // namespace

LocalReplicas::LocalReplicas(std::vector<std::unique_ptr<ReplicaContext>> contexts, int threads)
    : contexts_(std::move(contexts)), threads_(static_cast<int>(contexts_.size()), [threads](int) {
        at::set_num_threads(threads);
      }) {}

Result<void> LocalReplicas::run(std::uint64_t step, const Work& work) {
  for (const auto& context : contexts_) {
    context->begin_step(step);
    context->set_active(true);
  }
  std::vector<Result<void>> results(contexts_.size());
  threads_.run([&](int i) {
    const auto index = static_cast<std::size_t>(i);
    ReplicaContext& context = *contexts_[index];
    results[index] = guarded(work, i, context);
    if (!results[index] && results[index].error().code != ErrorCode::kNotFinite)
      context.leave(results[index].error().message);
    else
      context.set_active(false);
  });
  const auto failed = [](bool echoes) {
    return [echoes](const Result<void>& result) {
      return !result && (echoes || result.error().code != ErrorCode::kUnavailable);
    };
  };
  auto found = std::find_if(results.begin(), results.end(), failed(false));
  if (found == results.end()) found = std::find_if(results.begin(), results.end(), failed(true));
  return found == results.end() ? Result<void>{} : *found;
}

void LocalReplicas::leave(const std::string& reason) {
  for (const auto& context : contexts_) context->leave(reason);
}

}  // namespace troupe::learners
