// D4PG learners whose updates parameter servers apply: what they learn, and what is left of an
// update when servers die and answers are lost. Servers are objects of the test behind links that
// encode.
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "learners/collectives/rendezvous.hpp"
#include "learners/parameter_servers/shard.hpp"
#include "models/inference/normaliser.hpp"
#include "tests/learners/batches.hpp"

namespace troupe::learners {
namespace {

// The parameter servers of one run, which can die and come back.
class Servers {
 public:
  explicit Servers(int count, int workers = 1, std::uint64_t staleness = 1000,
                   LearnerOptions options = small_options())
      : options_(std::move(options)),
        shards(static_cast<std::size_t>(count)),
        workers_(workers),
        staleness_(staleness) {
    for (int i = 0; i < count; ++i) restart(i, {});
  }

  void restart(int server, const std::vector<std::uint8_t>& snapshot) {
    LearnerContext context;
    context.spec = spec_of(4, 2);
    auto made = make_parameter_shard("d4pg", options_, context,
                                     {.server = server,
                                      .servers = static_cast<int>(shards.size()),
                                      .workers = workers_,
                                      .staleness = staleness_,
                                      .incarnation = ++incarnation_});
    ASSERT_TRUE(made) << made.error().message;
    if (!snapshot.empty()) {
      const Result<void> restored = (*made)->restore(snapshot);
      ASSERT_TRUE(restored) << restored.error().message;
    }
    const std::lock_guard lock(mutex_);
    shards[static_cast<std::size_t>(server)] = *std::move(made);
  }

  LearnerGroup group(int worker = 0, std::uint32_t generation = 1) {
    LearnerGroup group{.generation = generation, .rendezvous = make_local_link(table_)};
    group.asynchronous = true;
    group.worker = worker;
    for (std::size_t i = 0; i < shards.size(); ++i)
      group.servers.push_back(std::make_shared<Link>(*this, i));
    return group;
  }

  std::function<bool()> loses_answer = [] { return false; };
  std::function<bool()> is_away = [] { return false; };

 private:
  class Link final : public RequestLink {
   public:
    Link(Servers& servers, std::size_t server) : servers_(servers), server_(server) {}
    Result<std::vector<std::uint8_t>> ask(std::span<const std::uint8_t> request,
                                          std::chrono::milliseconds) override {
      const std::lock_guard lock(servers_.mutex_);
      if (servers_.is_away()) return fail(ErrorCode::kUnavailable, "nobody is there");
      auto answer = servers_.shards[server_]->answer(request);
      if (servers_.loses_answer()) return fail(ErrorCode::kTimeout, "no answer");
      return answer;
    }

   private:
    Servers& servers_;
    std::size_t server_;
  };

  const LearnerOptions options_;
  std::mutex mutex_;
  std::shared_ptr<RendezvousTable> table_ = std::make_shared<RendezvousTable>();

 public:
  std::vector<std::unique_ptr<ParameterShard>> shards;

 private:
  const int workers_;
  const std::uint64_t staleness_;
  std::uint32_t incarnation_ = 0;
};

void settle(Learner& learner) {
  for (int i = 0; i < 1000; ++i) {
    const Result<bool> settled = learner.settle();
    ASSERT_TRUE(settled) << settled.error().message;
    if (*settled) return;
  }
  FAIL() << "the learner does not settle";
}

void join(Learner& learner, const LearnerGroup& group) {
  const Result<void> joined = learner.join(group);
  ASSERT_TRUE(joined) << joined.error().message;
  settle(learner);
}

TEST(D4pgServers, OneWorkerLearnsTheBitsOfALearnerAlone) {
  LearnerOptions options = small_options();
  options.d4pg.critic_learning_rate = 3e-3;
  options.d4pg.gradient_clip = 0.05;
  for (const int count : {1, 2, 5}) {
    Servers servers(count, 1, 0, options);
    const auto alone = learner_of(options, 4, 2), worker = learner_of(options, 4, 2);
    join(*worker, servers.group());
    Random random(1);
    for (int i = 0; i < 50; ++i) {
      const replay::Batch batch = random_batch(*alone, random);
      update(*alone, batch);
      update(*worker, batch);
      EXPECT_FALSE(worker->update(batch)) << "the last update is not settled";
      settle(*worker);
      ASSERT_EQ(worker->version(), alone->version());
    }
    EXPECT_EQ(relative_distance(*alone->parameters(), *worker->parameters()), 0) << count;
    EXPECT_EQ(worker->updates_sent().sent, static_cast<std::uint64_t>(50 * count));
    for (const auto& shard : servers.shards) EXPECT_EQ(shard->figures().version, 50U);
  }
}

TEST(D4pgServers, GroupsInSyncAreOneWorkerOfEqualBits) {
  LearnerOptions options = small_options();
  options.replicas = 2;
  options.timeout = std::chrono::seconds(20);
  Servers servers(2);
  std::vector<std::unique_ptr<Learner>> learners;
  for (int i = 0; i < 2; ++i) learners.push_back(learner_of(options, 4, 2));
  const LearnerGroup group = servers.group();
  Random chance(5);
  servers.is_away = [&] { return chance.below(3) == 0; };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {
        LearnerGroup mine = group;
        mine.rank = i;
        mine.size = 2;
        if (i > 0) mine.servers.clear();
        Learner& learner = *learners[static_cast<std::size_t>(i)];
        join(learner, mine);
        Random random(static_cast<std::uint64_t>(i));
        for (int k = 0; k < 40; ++k) {
          EXPECT_TRUE(*learner.all_ready(true));
          update(learner, random_batch(learner, random));
          settle(learner);
        }
        EXPECT_EQ(learner.version(), 40U);
      });
  }
  for (const auto& learner : learners)
    for (int replica = 0; replica < 2; ++replica)
      EXPECT_EQ(learner->state_hash(replica), learners[0]->state_hash(0));
  EXPECT_EQ(servers.shards[1]->figures().version, 40U);
}

TEST(D4pgServers, AppliesEachUpdateOnceWhateverDiesOrIsLost) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Servers servers(2);
    Random chance(seed), random(7);
    const auto worker = learner_of(small_options(), 4, 2);
    join(*worker, servers.group());
    servers.loses_answer = [&] { return chance.below(6) == 0; };
    servers.is_away = [&] { return chance.below(6) == 0; };
    std::vector<std::vector<std::uint8_t>> snapshots;
    for (const auto& shard : servers.shards) snapshots.push_back(*shard->snapshot());
    std::uint64_t applied = 0, rolled_back = 0;
    for (int i = 0; i < 150; ++i) {
      update(*worker, random_batch(*worker, random));
      if (chance.below(10) == 0) {
        const auto server = static_cast<std::size_t>(chance.below(2));
        const auto figures = servers.shards[server]->figures();
        applied += figures.applied;
        servers.restart(static_cast<int>(server), snapshots[server]);
        rolled_back += figures.version - servers.shards[server]->figures().version;
      }
      settle(*worker);
      if (const auto server = static_cast<std::size_t>(chance.below(2)); chance.below(5) == 0)
        snapshots[server] = *servers.shards[server]->snapshot();
    }
    std::uint64_t held = 0;
    for (const auto& shard : servers.shards) {
      applied += shard->figures().applied;
      held += shard->figures().version;
    }
    EXPECT_EQ(applied, held + rolled_back);
    EXPECT_GT(rolled_back, 0U);
    // The worker's own count is that of the servers, and each update went to both.
    EXPECT_EQ(worker->updates_sent().sent, applied);
    EXPECT_EQ(worker->updates_sent().sent, 300U);
  }
}

TEST(D4pgServers, SeveralWorkersShareTheServersWithinTheStaleness) {
  Servers servers(2, 4, 3);
  std::vector<std::unique_ptr<Learner>> workers;
  for (int i = 0; i < 4; ++i) workers.push_back(learner_of(small_options(), 4, 2));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        Learner& worker = *workers[static_cast<std::size_t>(i)];
        join(worker, servers.group(i));
        Random random(static_cast<std::uint64_t>(i));
        for (int k = 0; k < 50; ++k) {
          update(worker, random_batch(worker, random));
          settle(worker);
        }
      });
  }
  std::uint64_t sent = 0, refused = 0;
  for (const auto& worker : workers) {
    sent += worker->updates_sent().sent;
    refused += worker->updates_sent().refused;
    worker->refresh();
    EXPECT_EQ(relative_distance(*workers[0]->parameters(), *worker->parameters()), 0);
  }
  EXPECT_EQ(sent + refused, 2U * 4 * 50);
  EXPECT_EQ(sent, servers.shards[0]->figures().version + servers.shards[1]->figures().version);
  for (const auto& shard : servers.shards) EXPECT_LE(shard->figures().staleness_max, 3U);
}

TEST(D4pgServers, GoOnBitwiseFromSnapshotsAndTheLearnersCheckpoint) {
  LearnerOptions options = small_options();
  Servers one(2), two(2);
  const auto first = learner_of(options, 4, 2);
  join(*first, one.group());
  Random random(3);
  for (int i = 0; i < 25; ++i) {
    update(*first, random_batch(*first, random));
    settle(*first);
  }
  const TemporaryFolder folder;
  ASSERT_TRUE(first->save(folder.path()));
  for (int i = 0; i < 2; ++i) two.restart(i, *one.shards[static_cast<std::size_t>(i)]->snapshot());
  const auto second = learner_of(options, 4, 2, 99);
  ASSERT_TRUE(second->load(folder.path()));
  join(*second, two.group(0, 2));
  EXPECT_EQ(second->version(), 25U);
  for (int i = 0; i < 25; ++i) {
    const replay::Batch batch = random_batch(*first, random);
    update(*first, batch);
    update(*second, batch);
    settle(*first);
    settle(*second);
  }
  EXPECT_EQ(second->state_hash(0), first->state_hash(0));
}

TEST(D4pgServers, ObservationStatisticsReachEveryWorker) {
  LearnerOptions options = small_options();
  options.d4pg.normalise_observations = true;
  Servers servers(1, 2, 1000, options);
  const auto one = learner_of(options, 4, 2), two = learner_of(options, 4, 2);
  join(*one, servers.group(0));
  models::RunningStatistics seen(4);
  for (int i = 0; i < 10; ++i) {
    const auto x = static_cast<float>(i);
    ASSERT_TRUE(seen.add(std::vector<float>{x, 2 * x, 3, -x}));
  }
  ASSERT_TRUE(one->merge_observations(seen.encode()));
  Random random(1);
  for (int i = 0; i < 50; ++i) {
    update(*one, random_batch(*one, random));
    settle(*one);
  }
  join(*two, servers.group(1));
  EXPECT_EQ(two->parameters()->arrays.at(models::kNormaliserMean).values,
            one->parameters()->arrays.at(models::kNormaliserMean).values);
}

TEST(D4pgServers, RefuseValuesOfOtherNetworksAndTooManyServers) {
  Servers servers(2);
  LearnerOptions options = small_options();
  options.d4pg.policy = {16, 13};
  const auto other = learner_of(options, 4, 2);
  ASSERT_TRUE(other->join(servers.group()));
  const Result<bool> settled = other->settle();
  ASSERT_FALSE(settled);
  EXPECT_NE(settled.error().message.find("are not those of"), std::string::npos);
  LearnerContext context;
  context.spec = spec_of(4, 2);
  const auto none = make_parameter_shard("d4pg", small_options(), context, {.servers = 17});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "The 16 arrays of both networks cannot be divided over 17 parameter servers.");
  EXPECT_FALSE(make_parameter_shard("null", small_options(), context, {}));
}

}  // namespace
}  // namespace troupe::learners
