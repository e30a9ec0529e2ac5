// Implements both kinds of node hosts.
#include "actors/roles/node_host.hpp"

#include <unistd.h>

#include <array>
#include <map>
#include <mutex>

#include "actors/roles/coordinator.hpp"
#include "actors/roles/node.hpp"
#include "actors/runtime/process.hpp"
#include "actors/runtime/thread_settings.hpp"

namespace troupe::actors {
namespace {

class ProcessHost final : public NodeHost {
 public:
  explicit ProcessHost(const CoordinatorSetup& setup) : setup_(setup) {}

  Result<void> start(const std::string& node, std::uint32_t incarnation) override {
    const bool learner = node.starts_with("learner");
    const auto& learning = setup_.options.learners.learner;
    auto process = ChildProcess::spawn(
        {.name = node,
         .arguments = {"node", "--connect", "127.0.0.1:" + std::to_string(setup_.port.load()),
                       "--name", node, "--incarnation", std::to_string(incarnation), "--run-id",
                       std::to_string(setup_.run_id)},
         .executable = {},
         .environment = math_thread_environment(learner ? static_cast<int>(learning.threads) : 1),
         .log_file = (setup_.run_directory / "log" / (node + ".log")).string()});
    if (!process) return tl::unexpected(process.error());
    children_.insert_or_assign(node, Child{std::move(*process), incarnation, {}});
    return {};
  }

  void kill(const std::string& node) override {
    const auto child = children_.find(node);
    if (child != children_.end()) child->second.process.kill();
  }

  void note_end(const RoleEnded& said) override {
    const auto child = children_.find(said.node);
    if (child != children_.end() && child->second.incarnation == said.incarnation)
      child->second.said = said;
  }

  std::vector<Ended> take_ended() override {
    std::vector<Ended> ended;
    for (auto child = children_.begin(); child != children_.end();) {
      const auto status = child->second.process.poll();
      if (!status) {
        ++child;
        continue;
      }
      ended.push_back({child->first, child->second.incarnation, reason(child->second, *status),
                       child->second.said.permanent});
      child = children_.erase(child);
    }
    return ended;
  }

  std::int64_t pid_of(const std::string& node) const override {
    const auto child = children_.find(node);
    return child == children_.end() ? 0 : child->second.process.pid();
  }

 private:
  struct Child {
    ChildProcess process;
    std::uint32_t incarnation = 0;
    RoleEnded said;  // by the node itself
  };

  static std::string reason(const Child& child, const ExitStatus& status) {
    if (!child.said.error.empty()) return child.said.error;
    if (status.succeeded()) return "";
    const std::string tail = child.process.log_tail(3);
    return status.describe() + (tail.empty() ? "" : "; its last words: " + tail);
  }

  const CoordinatorSetup& setup_;
  std::map<std::string, Child> children_;
};

class LocalHost final : public NodeHost {
 public:
  LocalHost(caf::actor_system& system, const CoordinatorSetup& setup, CoordinatorActor coordinator)
      : system_(system), run_id_(setup.run_id), coordinator_(std::move(coordinator)) {}

  Result<void> start(const std::string& node, std::uint32_t incarnation) override {
    nodes_[node] = spawn_node(
        system_,
        {.name = node,
         .incarnation = incarnation,
         .run_id = run_id_,
         .coordinator = coordinator_,
         .host = {},
         .port = 0,
         .on_end = [ended = ended_, node, incarnation](const std::string& error, bool permanent) {
           const std::lock_guard lock(ended->mutex);
           ended->list.push_back({node, incarnation, error, permanent});
         }});
    return {};
  }

  // A thread cannot be killed: it is asked.
  void kill(const std::string& node) override {
    const auto found = nodes_.find(node);
    if (found != nodes_.end()) caf::anon_send(found->second, Shutdown{"killed"});
  }

  void note_end(const RoleEnded&) override {}

  std::vector<Ended> take_ended() override {
    std::vector<Ended> ended;
    {
      const std::lock_guard lock(ended_->mutex);
      ended = std::exchange(ended_->list, {});
    }
    for (const Ended& node : ended) nodes_.erase(node.node);
    return ended;
  }

  std::int64_t pid_of(const std::string&) const override { return ::getpid(); }

 private:
  struct EndedList {
    std::mutex mutex;
    std::vector<Ended> list;
  };
  caf::actor_system& system_;
  std::uint64_t run_id_;
  CoordinatorActor coordinator_;
  std::map<std::string, NodeActor> nodes_;
  std::shared_ptr<EndedList> ended_ =
      std::make_shared<EndedList>();  // filled by the nodes' threads
};

}  // namespace

std::string NodeHost::host_of(const std::string&) const {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "here";
}

std::unique_ptr<NodeHost> make_node_host(caf::actor_system& system, const CoordinatorSetup& setup,
                                         const CoordinatorActor& coordinator) {
  if (setup.options.processes == "0")
    return std::make_unique<LocalHost>(system, setup, coordinator);
  return std::make_unique<ProcessHost>(setup);
}

}  // namespace troupe::actors
