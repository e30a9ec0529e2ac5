// Implements the simulated shard, after actors/roles/shard_server.cpp.
#include "actors/simulation/shard_model.hpp"

#include <algorithm>

#include "actors/simulation/learner_model.hpp"

namespace troupe::actors::simulation {
namespace {

constexpr double kRetry = 1e-3;        // until a chunk that was held back is offered again
constexpr double kTellEvery = 200e-6;  // between two messages about what it has
constexpr double kSmallMessage = 100;  // bytes

}  // namespace

ShardModel::ShardModel(World& world, std::int64_t index, std::size_t host)
    : world_(world),
      index_(index),
      host_(host),
      limiter_({.kind = replay::LimiterKind::kAllowance}),
      told_(static_cast<std::size_t>(world.options.learners)) {
  if (!world.options.shards_with_learner)
    world.engine.after(world.random.uniform(0, kRetry), [this] { look(); });
}

void ShardModel::run(double seconds, Engine::Action done) {
  const double begun = world_.engine.seconds();
  world_.hosts[host_].run(seconds, [this, begun, done = std::move(done)] {
    busy_seconds_ += world_.engine.seconds() - begun;
    done();
  });
}

ShardState ShardModel::state() const {
  ShardState state;
  state.epoch = 1;
  state.inserted = state.held = limiter_.inserts();
  state.mass = static_cast<double>(state.held);
  state.waiting = waiting();
  state.sampled = sampled_;
  state.serial = serial_;
  state.allowed = allowed_;
  return state;
}

std::uint64_t ShardModel::waiting() const {
  if (pending_.empty() || limiter_.can_insert(pending_.front().items)) return 0;
  return pending_.front().items;
}

void ShardModel::allow(const Grant& grant) {
  if (grant.serial <= serial_) return;
  serial_ = grant.serial;
  allowed_ = grant.allowed;
  limiter_.allow(allowed_);
}

void ShardModel::take_chunk(const ChunkMessage& chunk) {
  pending_.push_back(chunk);
  news_ = true;
  if (world_.options.shards_with_learner && !busy_) serve_next();
}

void ShardModel::take_request(std::int64_t learner, std::uint64_t batch, std::uint64_t items) {
  wanted_.push_back({learner, batch, items});
  news_ = true;
}

// With its learner.
void ShardModel::serve_next() {
  if (busy_ || pending_.empty()) return;
  if (!limiter_.can_insert(pending_.front().items)) {
    if (std::exchange(retry_, true)) return;
    return world_.engine.after(kRetry, [this] {
      retry_ = false;
      serve_next();
    });
  }
  const Options& o = world_.options;
  busy_ = true;
  run(o.insert_chunk + o.insert_step * static_cast<double>(pending_.front().steps), [this] {
    take_first();
    busy_ = false;
    world_.learners->inserted();
    serve_next();
  });
}

void ShardModel::take_first() {
  const ChunkMessage chunk = pending_.front();
  pending_.pop_front();
  limiter_.commit_insert(chunk.items);
  ActorModel& actor = *world_.actors[chunk.worker];
  world_.network.send(host_, actor.host(), kSmallMessage,
                      [&actor, key = chunk.key] { actor.take_answer(key); });
}

// By itself: one round of what came in and what may pass now.
void ShardModel::look() {
  const Options& o = world_.options;
  if (!grants_.empty()) news_ = true;
  for (; !grants_.empty(); grants_.pop_front()) allow(grants_.front());
  double cost = 0;
  std::uint64_t items = 0;
  std::size_t chunks = 0;
  for (; chunks < pending_.size() && limiter_.can_insert(items + pending_[chunks].items);
       ++chunks) {
    items += pending_[chunks].items;
    cost += o.insert_chunk + o.insert_step * static_cast<double>(pending_[chunks].steps);
  }
  const std::size_t requests = wanted_.size();
  for (const Wanted& wanted : wanted_)
    cost += o.sample_batch + (o.sample_item + o.send_item) * static_cast<double>(wanted.items);
  const double now = world_.engine.seconds();
  if (std::exchange(news_, false)) last_news_ = now;
  if (chunks + requests == 0) {
    tell();
    return world_.engine.after(nap_after(now - last_news_), [this] { look(); });
  }
  run(cost, [this, chunks, requests] {
    for (std::size_t i = 0; i < chunks; ++i) take_first();
    for (std::size_t i = 0; i < requests; ++i) {
      answer(wanted_.front());
      wanted_.pop_front();
    }
    tell();
    look();
  });
}

void ShardModel::answer(const Wanted& wanted) {
  sampled_ += wanted.items;
  const auto shard = static_cast<std::size_t>(index_);
  world_.network.send(
      host_, world_.host_of_learner(wanted.learner),
      static_cast<double>(wanted.items) * world_.options.item_bytes, [this, wanted, shard] {
        world_.learners->take_items(wanted.learner, shard, wanted.batch, wanted.items);
      });
}

void ShardModel::tell() {
  const double now = world_.engine.seconds();
  if (now - told_at_ < kTellEvery) return;
  const ShardState state = this->state();
  for (std::size_t i = 0; i < told_.size(); ++i) {
    if (told_[i] == state) continue;
    told_[i] = state;
    told_at_ = now;
    world_.network.send(host_, world_.host_of_learner(static_cast<std::int64_t>(i)), kSmallMessage,
                        [this, i, state] {
                          world_.learners->take_state(i, static_cast<std::size_t>(index_), state);
                        });
  }
}

}  // namespace troupe::actors::simulation
