// A simulated environment actor: the run's own segments, window and routing, with steps that only
// cost time. One owner.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "actors/roles/segment_builder.hpp"
#include "actors/roles/send_window.hpp"
#include "actors/roles/shard_router.hpp"
#include "actors/simulation/world.hpp"

namespace troupe::actors::simulation {

// A chunk on its way to a shard.
struct ChunkMessage {
  std::uint32_t worker = 0;
  SendWindow::Key key;
  std::uint64_t steps = 0, items = 0;  // that it completes
};

class ActorModel {
 public:
  ActorModel(World& world, std::uint32_t index, std::size_t host);

  // From the network.
  void take_answer(const SendWindow::Key& key);
  void take_parameters(std::uint64_t version);

  std::size_t host() const { return host_; }
  // A parameter set is on its way: it gets no other one.
  bool expects_parameters() const { return expected_; }
  void expect_parameters() { expected_ = true; }
  std::uint64_t version() const { return version_; }
  std::uint64_t acknowledged() const { return acknowledged_; }  // steps
  double blocked();                                             // seconds, for want of credit

 private:
  struct Environment {
    SegmentBuilder builder;
    std::int64_t step = 0;   // of its episode
    std::int64_t items = 0;  // of it, completed by chunks that were closed
  };
  void work();
  void burst();
  void finish_burst(std::int64_t steps, double took);
  void collect();
  void send();
  void wake();

  World& world_;
  const std::uint32_t index_;
  const std::size_t host_;
  SendWindow window_;
  ShardRouter router_;
  std::vector<Environment> environments_;
  std::deque<SendWindow::Key> answers_;
  std::uint64_t sequence_ = 0, acknowledged_ = 0, version_ = 0, arrived_version_ = 0;
  bool busy_ = true, waking_ = false, expected_ = false, arrived_ = false;
  double blocked_ = 0, blocked_since_ = -1, last_answer_ = 0;
};

}  // namespace troupe::actors::simulation
