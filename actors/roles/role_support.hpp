// What all roles share: the class a role implements, free of actors, and the detached actor that
// drives it. A role object belongs to its actor's thread.
#pragma once

#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/roles/role_context.hpp"
#include "envs/spec/files.hpp"

namespace troupe::actors {

class RoleBase {
 public:
  explicit RoleBase(RoleContext context);
  virtual ~RoleBase() = default;
  RoleBase(const RoleBase&) = delete;
  RoleBase& operator=(const RoleBase&) = delete;

  // Once, before all else; calls ready() when the role serves.
  virtual Result<void> start() = 0;
  virtual void peers(const Peers&) {}
  virtual void limit(const StepLimits&) {}
  virtual void pause(bool) {}
  // Begins nothing new from now on; work() goes on until drained().
  virtual void drain() {}
  virtual bool drained() { return true; }
  virtual void evaluate(const EvaluateRequest&) {}
  virtual void statistics(const NormaliserDelta&) {}
  virtual void group(const GroupFormed&) {}
  // One slice of work, some milliseconds; may wait a few for something to do. An error ends the
  // role.
  virtual Result<void> work() = 0;
  // Takes the role's state and hands it to write_parts_later, or answers with parts_written.
  virtual void checkpoint(const CheckpointRequest& request) = 0;
  // Whether work() would end with this error again, however often it is tried.
  virtual bool is_final(const Error&) const { return false; }
  // Nothing comes after it.
  virtual void stop() {}

 protected:
  const RoleContext& context() const { return context_; }
  RoleBoard& board() const { return *context_.board; }

  // To the coordinator; safe from any thread of the role's.
  void ready(RoleReady ready) const;
  void parts_written(std::uint64_t checkpoint, Result<std::vector<FilePart>> parts,
                     const std::string& state_json) const;
  // Writes the files, and then what `more` writes, in a thread of its own, because a disk may take
  // seconds to sync; then answers with parts_written. Waits for an earlier call's thread.
  using MoreParts = std::function<Result<std::vector<FilePart>>()>;
  void write_parts_later(const CheckpointRequest& request, std::vector<FileContent> files,
                         const std::string& state_json, MoreParts more = {});
  void evaluated(EvaluationDone done) const;
  void episode(std::uint64_t environment, double episode_return, std::uint64_t length,
               std::uint64_t version);  // at most 20 a second go out
  void warn(const std::string& kind, const std::string& text) const;
  void send_statistics(std::vector<std::uint8_t> delta) const;

  // True ten times a second: time to publish on the board.
  bool report_due();

 private:
  RoleContext context_;
  std::chrono::steady_clock::time_point reported_{}, episode_sent_{};
  std::jthread writer_;  // last: joined before what it uses goes
};

struct RoleState {
  std::unique_ptr<RoleBase> role;
  bool draining = false;
  static inline const char* name = "role";
};

// The behaviour that drives a role; ends the actor, with RoleEnded to its node, on errors and
// Shutdown.
RoleActor::behavior_type drive_role(RoleActor::stateful_pointer<RoleState> self,
                                    std::shared_ptr<std::unique_ptr<RoleBase>> role,
                                    NodeActor parent, std::string node, std::uint32_t incarnation);

template <class Role>
RoleActor spawn_role_of(caf::actor_system& system, RoleContext context) {
  const NodeActor parent = context.parent;
  const std::string node = context.node;
  const std::uint32_t incarnation = context.assignment.incarnation;
  // CAF copies arguments: the only owner travels in a shared box.
  auto box =
      std::make_shared<std::unique_ptr<RoleBase>>(std::make_unique<Role>(std::move(context)));
  return system.spawn<caf::detached>(drive_role, std::move(box), parent, node, incarnation);
}

}  // namespace troupe::actors
