// Implements the seat, and the link to the coordinator's rendezvous.
#include "actors/roles/learner_seat.hpp"

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <cstdio>

namespace troupe::actors {
namespace {

constexpr std::chrono::milliseconds kAskAgain{2000};

// By way of the node, which knows the way to the coordinator.
class RendezvousLink final : public learners::RequestLink {
 public:
  RendezvousLink(NodeActor node, std::uint32_t generation)
      : node_(std::move(node)), generation_(generation) {}

  Result<std::vector<std::uint8_t>> ask(std::span<const std::uint8_t> request,
                                        std::chrono::milliseconds timeout) override {
    const caf::scoped_actor self(node_.home_system());
    Result<std::vector<std::uint8_t>> result;
    self->request(node_, timeout, RendezvousRequest{generation_, {request.begin(), request.end()}})
        .receive([&](RendezvousAnswer& answer) { result = std::move(answer.bytes); },
                 [&](const caf::error& error) {
                   result = fail(
                       error == caf::sec::request_timeout ? ErrorCode::kTimeout
                                                          : ErrorCode::kUnavailable,
                       "The coordinator does not answer: " + node_.home_system().render(error));
                 });
    return result;
  }

 private:
  const NodeActor node_;
  const std::uint32_t generation_;
};

}  // namespace

void LearnerSeat::told(const GroupFormed& group) {
  if (group.generation <= (news_ ? *news_ : group_).generation) return;
  news_ = group;
}

Result<void> LearnerSeat::join() {
  group_ = *std::exchange(news_, std::nullopt);
  stands_ = false;
  Result<void> joined = learner_.join(
      {.rank = static_cast<int>(group_.rank),
       .size = static_cast<int>(group_.size),
       .generation = group_.generation,
       .rendezvous = std::make_shared<RendezvousLink>(context_.parent, group_.generation)});
  stands_ = joined.has_value();
  if (!joined) ask(joined.error().message);
  if (joined) tell();
  return joined;
}

// Whoever joined holds the same bits, and says which.
void LearnerSeat::tell() const {
  char hash[24];
  std::snprintf(hash, sizeof hash, "%016llx",
                static_cast<unsigned long long>(learner_.state_hash(0)));
  caf::anon_send(context_.parent,
                 Event{context_.node, "info", "joined",
                       context_.node + " is learner " + std::to_string(group_.rank) + " of " +
                           std::to_string(group_.size) + " in generation " +
                           std::to_string(group_.generation) + " at update " +
                           std::to_string(learner_.version()) + ", state " + hash});
}

void LearnerSeat::over(const std::string& reason) {
  stands_ = false;
  ask(reason);
}

void LearnerSeat::ask_again() {
  if (!stands_ && !news_ && Clock::now() - asked_ > kAskAgain) ask("");
}

void LearnerSeat::ask(const std::string& reason) {
  asked_ = Clock::now();
  caf::anon_send(context_.parent, GroupWanted{context_.node, context_.assignment.incarnation,
                                              group_.generation, reason});
}

}  // namespace troupe::actors
