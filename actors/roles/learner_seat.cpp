// Implements the seat, and the link to the coordinator's rendezvous.
#include "actors/roles/learner_seat.hpp"

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <cstdio>

#include "actors/config/checks.hpp"

namespace troupe::actors {
namespace {

constexpr std::chrono::milliseconds kAskAgain{2000};

// By way of the node, which knows the way to the coordinator.
class RendezvousLink final : public learners::RequestLink {
 public:
  RendezvousLink(NodeActor node, const GroupFormed& group)
      : node_(std::move(node)), group_(group) {}

  Result<std::vector<std::uint8_t>> ask(std::span<const std::uint8_t> request,
                                        std::chrono::milliseconds timeout) override {
    const caf::scoped_actor self(node_.home_system());
    Result<std::vector<std::uint8_t>> result;
    self->request(
            node_, timeout,
            RendezvousRequest{group_.group, group_.generation, {request.begin(), request.end()}})
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
  const GroupFormed group_;
};

}  // namespace

LearnerSeat::LearnerSeat(const RoleContext& context, learners::Learner& learner,
                         const EnvSpec& spec)
    : context_(context), learner_(learner), asynchronous_(is_asynchronous(context.options)) {
  for (std::int64_t i = 0; i < parameter_servers(context.options); ++i)
    servers_.push_back(
        std::make_shared<UpdateLink>(context.peer_name(), update_limits(context.options, spec)));
}

void LearnerSeat::peers(const Peers& peers) {
  for (std::size_t i = 0; i < servers_.size() && i < peers.update_endpoints.size(); ++i)
    servers_[i]->set_endpoint(peers.update_endpoints[i]);
  leader_ = peers.leader;
  lead_ = peers.lead;
}

void LearnerSeat::told(const GroupFormed& group) {
  if (group.generation <= (news_ ? *news_ : group_).generation) return;
  news_ = group;
}

Result<void> LearnerSeat::join() {
  group_ = *std::exchange(news_, std::nullopt);
  stands_ = false;
  Result<void> joined =
      learner_.join({.rank = static_cast<int>(group_.rank),
                     .size = static_cast<int>(group_.size),
                     .generation = group_.generation,
                     .rendezvous = std::make_shared<RendezvousLink>(context_.parent, group_),
                     .asynchronous = asynchronous_,
                     .worker = static_cast<int>(group_.group),
                     .servers = {servers_.begin(), servers_.end()}});
  stands_ = joined.has_value();
  if (!joined) ask(joined.error().message);
  if (joined) tell();
  return joined;
}

// Whoever joined holds the same bits, and says which; a group of one has nobody to compare with.
void LearnerSeat::tell() const {
  if (asynchronous_ && group_.size == 1) return;
  char hash[24];
  std::snprintf(hash, sizeof hash, "%016llx",
                static_cast<unsigned long long>(learner_.state_hash(0)));
  caf::anon_send(context_.parent,
                 Event{context_.node, "info", "joined",
                       context_.node + " is learner " + std::to_string(group_.rank) + " of " +
                           std::to_string(group_.size) +
                           (asynchronous_ ? " of group " + std::to_string(group_.group) : "") +
                           " in generation " + std::to_string(group_.generation) + " at update " +
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
