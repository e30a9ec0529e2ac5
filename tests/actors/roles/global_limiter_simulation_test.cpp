// One ratio over several shards in whole runs: late messages, dead shards, idle ones.
#include <gtest/gtest.h>

#include <deque>

#include "actors/roles/global_limiter.hpp"
#include "envs/spec/random.hpp"

namespace troupe::actors {
namespace {

// Shards with environment actors of unequal speed, messages that take their time and a sampler that
// draws by mass; some shards die and come back with an older state. What must hold at every moment
// is the band, by what really was inserted and sampled, and that something always moves.
class World {
 public:
  World(std::size_t shards, const replay::LimiterOptions& options, std::uint64_t batch,
        std::uint64_t seed)
      : limiter_(options), options_(options), batch_(batch), random_(seed), shards_(shards) {}

  struct Shard {
    std::uint32_t epoch = 1;
    std::uint64_t restored = 0, inserted = 0, saved = 0;
    std::uint64_t serial = 0, allowed = 0;
    std::uint64_t chunk = 0;  // waits
    double speed = 1;         // chance of a new chunk a tick
    bool live = true;
    std::deque<Grant> inbox;
    std::deque<ShardState> outbox;
  };

  std::vector<Shard>& shards() { return shards_; }
  std::uint64_t updates() const { return updates_; }
  std::uint64_t inserted() const { return inserted_; }
  GlobalLimiter& limiter() { return limiter_; }

  void tick() {
    for (Shard& shard : shards_)
      if (shard.live) work(shard);
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      Shard& shard = shards_[i];
      while (!shard.outbox.empty() && random_.below(4) > 0) {
        if (shard.live) limiter_.report(i, shard.outbox.front());
        shard.outbox.pop_front();
      }
    }
    for (const Grant& grant : limiter_.grants()) shards_[grant.shard].inbox.push_back(grant);
    // A batch's updates are instant, but not every tick.
    if (random_.below(3) == 0 && limiter_.can_sample(batch_)) {
      limiter_.commit_sample(batch_);
      ++updates_;
    }
    check();
  }

  void kill(std::size_t index) {
    Shard& shard = shards_[index];
    shard.live = false;
    shard.inbox.clear();
    shard.outbox.clear();
    limiter_.gone(index);
  }

  // With what it had at its last checkpoint; what it had told but lost stays inserted.
  void revive(std::size_t index) {
    Shard& shard = shards_[index];
    shard = {.epoch = shard.epoch + 1,
             .restored = shard.saved,
             .inserted = shard.saved,
             .saved = shard.saved,
             .serial = 0,
             .allowed = 0,
             .chunk = 0,
             .speed = shard.speed,
             .live = true,
             .inbox = {},
             .outbox = {}};
  }

 private:
  void work(Shard& shard) {
    while (!shard.inbox.empty() && random_.below(4) > 0) {
      const Grant grant = shard.inbox.front();
      shard.inbox.pop_front();
      if (grant.epoch != shard.epoch) continue;
      shard.serial = grant.serial;
      shard.allowed = grant.allowed;
    }
    if (shard.chunk == 0 && random_.uniform() < shard.speed) shard.chunk = 1 + random_.below(3);
    if (shard.chunk > 0 && shard.inserted + shard.chunk <= shard.allowed) {
      shard.inserted += shard.chunk;
      inserted_ += shard.chunk;
      shard.chunk = 0;
    }
    if (random_.below(50) == 0) shard.saved = shard.inserted;
    shard.outbox.push_back({.epoch = shard.epoch,
                            .restored = shard.restored,
                            .inserted = shard.inserted,
                            .held = shard.inserted,
                            .mass = static_cast<double>(shard.inserted),
                            .waiting = shard.chunk,
                            .serial = shard.serial,
                            .allowed = shard.allowed});
  }

  void check() const {
    const double cursor = static_cast<double>(inserted_) * options_.samples_per_insert -
                          static_cast<double>(updates_ * batch_);
    // What died before it was told of is beyond the sampler's knowledge: one chunk a death.
    ASSERT_LE(cursor, options_.max_diff() + slack_ * options_.samples_per_insert);
    if (updates_ > 0) {
      ASSERT_GE(cursor, options_.min_diff());
    }
  }

 public:
  double slack_ = 0;

 private:
  GlobalLimiter limiter_;
  const replay::LimiterOptions options_;
  const std::uint64_t batch_;
  Random random_;
  std::vector<Shard> shards_;
  std::uint64_t updates_ = 0, inserted_ = 0;
};

TEST(GlobalLimiterSimulation, KeepsTheBandAndAlwaysMovesWhateverTheShardsActorsDo) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const std::size_t shards = 1 + random.below(4);
    // The narrowest band that check_limiter allows: a chunk of 3 and a batch of 16 / 4.
    World world(shards, {20, 4, 14}, 16, seed);
    for (World::Shard& shard : world.shards()) shard.speed = random.uniform();
    world.shards()[random.below(shards)].speed = 1;
    if (shards > 1) world.shards()[0].speed = seed % 3 == 0 ? 0 : world.shards()[0].speed;
    if (shards > 1 && seed % 3 == 0) world.shards()[1].speed = 1;
    std::uint64_t before = 0;
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 200; ++i) world.tick();
      ASSERT_GT(world.updates(), before) << "seed " << seed << " stands still in round " << round;
      before = world.updates();
    }
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    EXPECT_NEAR(world.limiter().measured_spi(), 4, 0.2) << "seed " << seed;
  }
}

TEST(GlobalLimiterSimulation, AShardThatTakesOverFillsUpAndTheRatioHolds) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    World world(3, {20, 4, 14}, 16, seed);
    Random random(seed);
    for (World::Shard& shard : world.shards()) shard.speed = 0.2 + 0.8 * random.uniform();
    for (int death = 0; death < 15; ++death) {
      for (int i = 0; i < 100; ++i) world.tick();
      const std::size_t victim = random.below(3);
      world.kill(victim);
      // Of what it had leave for, the sampler heard nothing: at most the band.
      world.slack_ += 7;
      for (int i = 0; i < 50; ++i) world.tick();
      world.revive(victim);
      const std::uint64_t held = world.shards()[victim].inserted, updates = world.updates();
      for (int i = 0; i < 400; ++i) world.tick();
      ASSERT_GT(world.shards()[victim].inserted, held) << "seed " << seed << " death " << death;
      ASSERT_GT(world.updates(), updates) << "seed " << seed << " death " << death;
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    }
  }
}

TEST(GlobalLimiterSimulation, EveryShardWithActorsGetsItsShareWhenAllWait) {
  World world(3, {20, 4, 14}, 16, 5);
  for (World::Shard& shard : world.shards()) shard.speed = 1;
  for (int i = 0; i < 20000; ++i) world.tick();
  const auto total = static_cast<double>(world.inserted());
  for (const World::Shard& shard : world.shards())
    EXPECT_NEAR(static_cast<double>(shard.inserted) / total, 1.0 / 3, 0.05);
}

}  // namespace
}  // namespace troupe::actors
