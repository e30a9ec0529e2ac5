// Implements the worker's side.
#include "learners/parameter_servers/worker.hpp"

#include <string>
#include <thread>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

constexpr std::chrono::milliseconds kPause(5);  // between questions to a server that is not there

bool may_come_back(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
}

}  // namespace

ParameterWorker::ParameterWorker(std::shared_ptr<ParameterService> service, WorkerId id,
                                 std::chrono::milliseconds patience)
    : service_(std::move(service)), id_(id), patience_(patience) {}

// Asks until a server with values answers.
Result<ServerState> ParameterWorker::ask_state(Clock::time_point deadline) {
  while (true) {
    Result<ServerState> state = service_->state(id_);
    if (state ? state->ready : !may_come_back(state.error())) return state;
    if (Clock::now() >= deadline)
      return fail(ErrorCode::kTimeout,
                  "A parameter server has not been there for " + std::to_string(patience_.count()) +
                      " ms" + (state ? ": it has no values." : ": " + state.error().message));
    std::this_thread::sleep_for(kPause);
  }
}

Result<std::vector<at::Tensor>> ParameterWorker::begin(const std::vector<at::Tensor>* first) {
  const Clock::time_point deadline = Clock::now() + patience_;
  while (first) {
    const Result<void> given = service_->initialise(*first);
    if (given) break;
    if (!may_come_back(given.error()) || Clock::now() >= deadline)
      return tl::unexpected(given.error());
    std::this_thread::sleep_for(kPause);
  }
  const Result<ServerState> state = ask_state(deadline);
  if (!state) return tl::unexpected(state.error());
  incarnation_ = state->incarnation;
  version_ = state->version;
  return values_again(deadline);
}

Result<bool> ParameterWorker::reconcile(Clock::time_point deadline) {
  const Result<ServerState> state = ask_state(deadline);
  if (!state) return tl::unexpected(state.error());
  const bool arrived = state->last_sequence > sequence_;
  if (arrived) {
    ++sequence_;
    ++ledger_.sent;
  }
  ledger_.rolled_back += ledger_.sent - ledger_.rolled_back - state->applied;
  const bool reborn = state->incarnation != incarnation_;
  if (reborn) ++ledger_.rebirths;
  incarnation_ = state->incarnation;
  // What is sent again to a reborn server counts as fresh: the values it belongs to are gone.
  if (reborn || arrived) version_ = state->version;
  seen_ = state->version;
  return arrived;
}

Result<std::vector<at::Tensor>> ParameterWorker::values_again(Clock::time_point deadline) {
  while (true) {
    Result<std::vector<at::Tensor>> values = service_->values();
    if (values || !may_come_back(values.error())) return values;
    // Gone again, perhaps with our update. Its state may be there while its values are not.
    if (Clock::now() >= deadline) return values;
    std::this_thread::sleep_for(kPause);
    if (const Result<bool> settled = reconcile(deadline); !settled)
      return tl::unexpected(settled.error());
  }
}

Result<std::vector<at::Tensor>> ParameterWorker::update(const std::vector<at::Tensor>& gradients) {
  const Clock::time_point deadline = Clock::now() + patience_;
  while (!arrived_) {
    const Push push{.worker = id_,
                    .sequence = sequence_ + 1,
                    .server_incarnation = incarnation_,
                    .version = version_,
                    .gradients = gradients};
    Result<PushReply> reply = service_->push(push);
    if (!reply && !may_come_back(reply.error())) return tl::unexpected(reply.error());
    if (!reply || reply->outcome == PushOutcome::kReborn) {
      const Result<bool> arrived = reconcile(deadline);
      if (!arrived) return tl::unexpected(arrived.error());
      if (!*arrived) {
        if (!reply && Clock::now() >= deadline) return tl::unexpected(reply.error());
        if (!reply) std::this_thread::sleep_for(kPause);
      }
      arrived_ = *arrived;
      continue;
    }
    version_ = reply->version;
    if (reply->outcome == PushOutcome::kStale) {
      ++ledger_.refused;
    } else {
      ++sequence_;
      ++ledger_.sent;
    }
    return std::move(reply->values);
  }
  Result<std::vector<at::Tensor>> values = values_again(deadline);
  arrived_ = !values;
  return values;
}

Result<std::vector<at::Tensor>> ParameterWorker::refresh() {
  const Clock::time_point deadline = Clock::now() + patience_;
  if (const Result<bool> settled = reconcile(deadline); !settled)
    return tl::unexpected(settled.error());
  version_ = seen_;
  return values_again(deadline);
}

}  // namespace troupe::learners
