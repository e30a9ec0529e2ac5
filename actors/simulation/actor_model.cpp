// Implements the simulated environment actor, after actors/roles/environment_role.cpp.
#include "actors/simulation/actor_model.hpp"

#include <algorithm>
#include <array>

#include "actors/simulation/shard_model.hpp"
#include "replay/bytes.hpp"

namespace troupe::actors::simulation {
namespace {

constexpr std::chrono::milliseconds kMaxChunkAge{50};
constexpr std::chrono::hours kNeverAgain{1};  // nothing is lost here, so nothing is sent again
constexpr double kSlice = 2e-3;
constexpr double kChunkHeader = 100;  // bytes

replay::Signature one_float() {
  replay::Signature signature;
  signature.observation = {{"observation", DType::kF32, {1}}};
  signature.step = {{"action", DType::kF32, {1}}};
  return signature;
}

// Windows of n steps that `steps` of an episode that goes on complete.
std::int64_t items_of(std::int64_t steps, std::int64_t n) {
  return std::max<std::int64_t>(0, steps - n + 1);
}

}  // namespace

ActorModel::ActorModel(World& world, std::uint32_t index, std::size_t host)
    : world_(world),
      index_(index),
      host_(host),
      window_(static_cast<std::size_t>(world.options.credit), kNeverAgain),
      router_(index) {
  router_.set_live(std::vector<bool>(world.shards.size(), true));
  const Options& o = world.options;
  for (std::uint32_t i = 0; i < o.environments; ++i)
    environments_.push_back({SegmentBuilder(one_float(), index, 1, i, world.flush_steps), 0, 0});
  // Not all at once.
  world.engine.after(world.random.uniform(0, 0.01), [this] { work(); });
}

double ActorModel::blocked() {
  const double now = world_.engine.seconds();
  return blocked_ + (blocked_since_ >= 0 ? now - blocked_since_ : 0);
}

void ActorModel::take_answer(const SendWindow::Key& key) {
  answers_.push_back(key);
  if (busy_ || waking_) return;
  // One shard's answer is waited for; several are looked at in turn.
  waking_ = true;
  const double now = world_.engine.seconds();
  const double nap = nap_after(now - last_answer_);
  world_.engine.after(world_.shards.size() > 1 ? world_.random.uniform(0, nap) : 0,
                      [this] { wake(); });
}

void ActorModel::take_parameters(std::uint64_t version) {
  arrived_ = true;
  arrived_version_ = version;
}

void ActorModel::wake() {
  waking_ = false;
  busy_ = true;
  work();
}

void ActorModel::work() {
  const double now = world_.engine.seconds();
  while (!answers_.empty()) {
    acknowledged_ += window_.acknowledge(answers_.front()).value_or(0);
    answers_.pop_front();
    last_answer_ = now;
  }
  if (arrived_) {
    arrived_ = expected_ = false;
    version_ = arrived_version_;
    return world_.hosts[host_].run(world_.options.take_parameters, [this] { work(); });
  }
  collect();
  send();
  if (window_.full()) {
    if (blocked_since_ < 0) blocked_since_ = now;
    busy_ = false;
    return;
  }
  if (blocked_since_ >= 0) blocked_ += now - blocked_since_;
  blocked_since_ = -1;
  burst();
}

// As many steps as fit into a slice and close no chunk before its end.
void ActorModel::burst() {
  const Options& o = world_.options;
  const double each = o.step * static_cast<double>(o.environments);
  auto steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(kSlice / each));
  double resets = 0;
  for (const Environment& environment : environments_) {
    steps = std::min(steps, o.episode_steps - environment.step);
    steps = std::min(
        steps, world_.flush_steps - static_cast<std::int64_t>(environment.builder.open_steps()));
    if (environment.step == 0) resets += o.reset;
  }
  const double cost = each * static_cast<double>(steps) + resets;
  const double begun = world_.engine.seconds();
  world_.hosts[host_].run(
      cost, [this, steps, begun] { finish_burst(steps, world_.engine.seconds() - begun); });
}

void ActorModel::finish_burst(std::int64_t steps, double took) {
  constexpr std::array<float, 1> kNothing{0};
  const auto end = world_.engine.now();
  for (Environment& environment : environments_) {
    for (std::int64_t i = 0; i < steps; ++i) {
      const double back = took * (1 - static_cast<double>(i) / static_cast<double>(steps));
      const auto at = end - std::chrono::duration_cast<Engine::Time::duration>(
                                std::chrono::duration<double>(back));
      environment.builder.add(kNothing, kNothing, 0, version_, 1, at);
    }
    environment.step += steps;
    if (environment.step < world_.options.episode_steps) continue;
    environment.builder.end(replay::EpisodeEnd::kTruncated, kNothing);
  }
  const std::uint64_t before = sequence_;
  collect();
  const auto made = static_cast<double>(sequence_ - before);
  if (made == 0) return work();
  world_.hosts[host_].run(made * world_.options.chunk, [this] { work(); });
}

void ActorModel::collect() {
  for (Environment& environment : environments_)
    while (const auto chunk = environment.builder.take(world_.engine.now(), kMaxChunkAge)) {
      const replay::ChunkHeader& header = chunk->header;
      const std::int64_t steps = header.first_step + header.steps;
      const std::int64_t items = header.ends() ? steps : items_of(steps, world_.options.n_step);
      auto payload = std::make_shared<std::vector<std::uint8_t>>();
      replay::ByteWriter(*payload).put(static_cast<std::uint64_t>(items - environment.items));
      environment.items = header.ends() ? 0 : items;
      if (header.ends()) environment.step = 0;
      const std::uint32_t shard = router_.route(header.environment, header.first_step == 0,
                                                window_.by_lane(world_.shards.size()));
      window_.add({1, sequence_++}, header.steps, std::move(payload), header.environment, shard);
    }
}

void ActorModel::send() {
  const auto now = world_.engine.now();
  while (const SendWindow::Entry* entry = window_.next(now)) {
    const ChunkMessage message{index_, entry->key, entry->steps,
                               replay::ByteReader(*entry->payload).take<std::uint64_t>()};
    ShardModel& shard = *world_.shards[entry->lane];
    const double bytes =
        kChunkHeader + static_cast<double>(entry->steps) * world_.options.step_bytes;
    window_.sent(entry->key, now);
    const Options& o = world_.options;
    const auto steps = static_cast<double>(entry->steps);
    // Threads of their own carry it, at both ends.
    world_.hosts[host_].run(o.send_chunk + o.send_step * steps, [this, &shard, message, bytes] {
      world_.network.send(host_, shard.host(), bytes, [this, &shard, message] {
        const Options& costs = world_.options;
        world_.hosts[shard.host()].run(
            costs.receive_chunk + costs.receive_step * static_cast<double>(message.steps),
            [&shard, message] { shard.take_chunk(message); });
      });
    });
  }
}

}  // namespace troupe::actors::simulation
