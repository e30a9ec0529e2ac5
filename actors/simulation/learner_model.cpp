// Implements the simulated learners, after actors/roles/learner_role.cpp, local_source.cpp and
// remote_source.cpp.
#include "actors/simulation/learner_model.hpp"

#include <algorithm>

#include "actors/roles/draw_shares.hpp"
#include "actors/simulation/actor_model.hpp"
#include "actors/simulation/shard_model.hpp"

namespace troupe::actors::simulation {
namespace {

constexpr double kLook = 2e-3;         // between two looks at the shards while batches are full
constexpr double kInsert = 1e-3;       // the same while a batch waits for inserts
constexpr double kSmallMessage = 100;  // bytes

}  // namespace

LearnersModel::LearnersModel(World& world) : world_(world) {
  const Options& o = world.options;
  const replay::LimiterOptions ratio{.min_size = o.min_size,
                                     .samples_per_insert = o.samples_per_insert,
                                     .error_buffer = world.error_buffer};
  for (std::int64_t i = 0; i < o.learners; ++i) {
    // Who follows goes by what the one that leads may sample.
    Learner& learner =
        learners_.emplace_back(i == 0 ? ratio : replay::LimiterOptions{.min_size = o.min_size});
    learner.host = world.host_of_learner(i);
    learner.empty = o.prefetch + 1;
  }
  for (std::size_t i = 0; i < learners_.size(); ++i)
    world.engine.after(world.random.uniform(0, kInsert), [this, i] {
      if (world_.options.shards_with_learner)
        look_local();
      else
        look_remote(learners_[i]);
    });
}

// What the shards have, and their leave to insert; an answer comes at once.
void LearnersModel::look_local() {
  Learner& learner = learners_.front();
  const auto report = [&] {
    for (std::size_t i = 0; i < world_.shards.size(); ++i)
      learner.limiter.report(i, world_.shards[i]->state());
  };
  report();
  for (const Grant& grant : learner.limiter.grants()) world_.shards[grant.shard]->allow(grant);
  report();
  if (learner.empty == 0) return nap_local(kLook);
  if (!learner.limiter.can_sample(part())) return nap_local(kInsert);
  fill_local();
}

void LearnersModel::nap_local(double seconds) {
  learners_.front().napping = true;
  world_.engine.after(seconds, [this, mine = ++nap_] {
    if (mine == nap_ && std::exchange(learners_.front().napping, false)) look_local();
  });
}

void LearnersModel::inserted() {
  Learner& learner = learners_.front();
  if (learner.napping && learner.empty > 0) nap_local(0);
}

void LearnersModel::fill_local() {
  const Options& o = world_.options;
  Learner& learner = learners_.front();
  const double cost = o.sample_batch + o.sample_item * static_cast<double>(part());
  world_.hosts[learner.host].run(cost, [this, &learner] {
    learner.limiter.commit_sample(part());
    --learner.empty;
    ++learner.filled;
    next(learner);
    look_local();
  });
}

void LearnersModel::take_state(std::size_t index, std::size_t shard, const ShardState& state) {
  learners_[index].limiter.report(shard, state);
  learners_[index].news = true;
}

void LearnersModel::take_items(std::int64_t index, std::size_t, std::uint64_t batch,
                               std::uint64_t items) {
  Learner& learner = learners_[static_cast<std::size_t>(index)];
  for (Order& order : learner.orders)
    if (order.batch == batch) order.missing -= items;
  learner.arrived += items;
  learner.news = true;
}

// One round of the thread that fills batches from shards elsewhere.
void LearnersModel::look_remote(Learner& learner) {
  const Options& o = world_.options;
  // One batch a round is begun.
  const auto counted = static_cast<std::uint64_t>(o.batch);
  if (static_cast<std::int64_t>(learner.orders.size()) < o.prefetch && learner.empty > 0 &&
      learner.limiter.can_sample(counted))
    order(learner);
  const double now = world_.engine.seconds();
  if (std::exchange(learner.news, false)) learner.last_news = now;
  const double cost = o.receive_item * static_cast<double>(std::exchange(learner.arrived, 0));
  const auto go_on = [this, &learner] {
    while (!learner.orders.empty() && learner.orders.front().missing == 0) {
      learner.orders.pop_front();
      ++learner.filled;
      next(learner);
    }
    if (leads(learner)) send_grants(learner);
    const double idle = world_.engine.seconds() - learner.last_news;
    world_.engine.after(nap_after(idle), [this, &learner] { look_remote(learner); });
  };
  if (cost == 0) return go_on();
  world_.hosts[learner.host].run(cost, go_on);
}

void LearnersModel::order(Learner& learner) {
  const auto counts = draw_counts(static_cast<std::size_t>(part()),
                                  draw_shares(learner.limiter.states()), world_.random);
  Order order{next_batch_++, 0};
  const std::int64_t index = &learner - learners_.data();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    order.missing += counts[i];
    ShardModel& shard = *world_.shards[i];
    world_.network.send(learner.host, shard.host(), kSmallMessage,
                        [&shard, index, batch = order.batch, items = counts[i]] {
                          shard.take_request(index, batch, items);
                        });
  }
  learner.limiter.commit_sample(static_cast<std::uint64_t>(world_.options.batch));
  --learner.empty;
  learner.orders.push_back(order);
}

void LearnersModel::send_grants(Learner& learner) {
  for (const Grant& grant : learner.limiter.grants()) {
    ShardModel& shard = *world_.shards[grant.shard];
    world_.network.send(learner.host, shard.host(), kSmallMessage,
                        [&shard, grant] { shard.take_grant(grant); });
  }
}

// A learner without a batch takes one; all that have one update.
void LearnersModel::next(Learner& learner) {
  if (learner.holds || at_work_ > 0 || learner.filled == 0) return;
  --learner.filled;
  learner.holds = true;
  const bool all = std::all_of(learners_.begin(), learners_.end(),
                               [](const Learner& each) { return each.holds; });
  if (!all) return;
  starved_ += world_.engine.seconds() - starved_since_;
  update();
}

void LearnersModel::update() {
  const Options& o = world_.options;
  at_work_ = learners_.size();
  for (const Learner& learner : learners_)
    world_.hosts[learner.host].run(o.update + o.update_item * static_cast<double>(part()), [this] {
      if (--at_work_ == 0) reduce();
    });
}

// A ring: each sends all but its own part of the sums on, twice; before it all say that they have
// their batch.
void LearnersModel::reduce() {
  if (count() == 1) return finish();
  const Options& o = world_.options;
  const auto k = static_cast<double>(count());
  const bool apart = o.hosts > 1;
  const double latency = apart ? o.latency : o.local_latency;
  const double bandwidth = apart ? o.bandwidth : o.local_bandwidth;
  const double takes = 4 * (k - 1) * latency + 2 * (k - 1) / k * o.gradient_bytes / bandwidth;
  reducing_ += takes;
  at_work_ = 1;
  world_.engine.after(takes, [this] {
    at_work_ = 0;
    finish();
  });
}

void LearnersModel::finish() {
  ++version_;
  for (Learner& learner : learners_) {
    learner.holds = false;
    ++learner.empty;
  }
  const auto go_on = [this] {
    at_work_ = 0;
    starved_since_ = world_.engine.seconds();
    if (world_.options.shards_with_learner) inserted();  // it looks for empty batches
    for (Learner& learner : learners_) next(learner);
  };
  if (version_ % static_cast<std::uint64_t>(world_.options.publish_every) != 0) return go_on();
  const Options& o = world_.options;
  at_work_ = 1;
  world_.hosts[learners_.front().host].run(
      o.publish + o.publish_each * static_cast<double>(world_.actors.size()), [this, go_on] {
        publish();
        go_on();
      });
}

void LearnersModel::publish() {
  for (const auto& actor : world_.actors) {
    if (actor->expects_parameters()) continue;
    actor->expect_parameters();
    ++published_;
    world_.network.send(learners_.front().host, actor->host(), world_.options.parameter_bytes,
                        [to = actor.get(), version = version_] { to->take_parameters(version); });
  }
}

}  // namespace troupe::actors::simulation
