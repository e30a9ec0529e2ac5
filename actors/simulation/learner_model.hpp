// Simulated learners that apply every update together, each with a thread that fills its batches:
// the run's own limiter keeps the ratio, its own rule shares the draws among the shards. One owner.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "actors/roles/global_limiter.hpp"
#include "actors/simulation/world.hpp"

namespace troupe::actors::simulation {

class LearnersModel {
 public:
  explicit LearnersModel(World& world);

  // From shards elsewhere.
  void take_state(std::size_t learner, std::size_t shard, const ShardState& state);
  void take_items(std::int64_t learner, std::size_t shard, std::uint64_t batch,
                  std::uint64_t items);
  // From shards of the same process: something was inserted.
  void inserted();

  std::uint64_t version() const { return version_; }
  double samples_per_insert() const { return learners_.front().limiter.measured_spi(); }
  std::uint64_t published() const { return published_; }
  // Seconds in which the first learner's thread had no batch, and in which all of them waited for
  // each other's sums.
  double starved() const { return starved_; }
  double reducing() const { return reducing_; }

 private:
  struct Order {
    std::uint64_t batch = 0;
    std::uint64_t missing = 0;  // items
  };
  struct Learner {
    explicit Learner(const replay::LimiterOptions& options) : limiter(options) {}
    std::size_t host = 0;
    GlobalLimiter limiter;
    std::int64_t empty = 0, filled = 0;
    bool holds = false;         // a batch, and waits for the others
    std::deque<Order> orders;   // of shards elsewhere
    std::uint64_t arrived = 0;  // items that wait to be taken
    double last_news = 0;
    bool news = false, filling = false, napping = false;
  };
  std::uint64_t part() const { return static_cast<std::uint64_t>(world_.options.batch) / count(); }
  std::uint64_t count() const { return learners_.size(); }
  bool leads(const Learner& learner) const { return &learner == &learners_.front(); }

  void look_local();
  void fill_local();
  void nap_local(double seconds);
  void look_remote(Learner& learner);
  void order(Learner& learner);
  void send_grants(Learner& learner);
  void next(Learner& learner);
  void update();
  void reduce();
  void finish();
  void publish();

  World& world_;
  std::vector<Learner> learners_;
  std::uint64_t version_ = 0, published_ = 0, next_batch_ = 1, nap_ = 0;
  std::size_t at_work_ = 0;
  double starved_ = 0, starved_since_ = 0, reducing_ = 0;
};

}  // namespace troupe::actors::simulation
