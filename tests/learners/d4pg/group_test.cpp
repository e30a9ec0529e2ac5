// Learners that apply every update together: threads in the place of their processes, the real
// rendezvous and shared memory between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "learners/collectives/rendezvous.hpp"
#include "models/inference/normaliser.hpp"
#include "tests/learners/batches.hpp"

namespace troupe::learners {
namespace {

// Some learners, and the table where they find each other.
class Learners {
 public:
  explicit Learners(int count, std::int64_t replicas = 1,
                    const std::string& transport = "shared_memory", bool normalise = false) {
    LearnerOptions options = small_options();
    options.replicas = replicas;
    options.transport = transport;
    options.timeout = std::chrono::seconds(20);
    options.d4pg.normalise_observations = normalise;
    for (int i = 0; i < count; ++i) learners.push_back(learner_of(options, 4, 2));
  }

  // work(index, learner) of each of `indices` on a thread of its own.
  template <class Work>
  void each(const std::vector<int>& indices, Work work) {
    std::vector<std::jthread> threads;
    for (const int index : indices)
      threads.emplace_back([&, index] { work(index, *learners[static_cast<std::size_t>(index)]); });
  }
  // The next group, ranked as listed.
  void form(const std::vector<int>& indices) {
    ++generation;
    std::atomic<int> rank = 0;
    std::vector<int> rank_of(learners.size());
    for (const int index : indices) rank_of[static_cast<std::size_t>(index)] = rank++;
    each(indices, [&](int index, Learner& learner) {
      const Result<void> joined = learner.join(
          group(rank_of[static_cast<std::size_t>(index)], static_cast<int>(indices.size())));
      EXPECT_TRUE(joined) << joined.error().message;
    });
  }
  LearnerGroup group(int rank, int size) {
    return {
        .rank = rank, .size = size, .generation = generation, .rendezvous = make_local_link(table)};
  }
  void expect_equal(const std::vector<int>& indices) {
    for (const int index : indices)
      for (int replica = 0; replica < learners[0]->replicas(); ++replica)
        EXPECT_EQ(learners[static_cast<std::size_t>(index)]->state_hash(replica),
                  learners[static_cast<std::size_t>(indices[0])]->state_hash(0));
  }

  std::vector<std::unique_ptr<Learner>> learners;
  std::shared_ptr<RendezvousTable> table = std::make_shared<RendezvousTable>();
  std::uint32_t generation = 0;
};

// Rows first… of a batch, as many as the learner takes.
replay::Batch part_of_batch(const Learner& learner, const replay::Batch& whole, std::size_t first) {
  replay::Batch part(learner.batch_columns(), learner.batch_size());
  for (const Column& column : learner.batch_columns()) {
    const auto from = whole.floats(column.name);
    const auto to = part.floats(column.name);
    const std::size_t row = from.size() / static_cast<std::size_t>(whole.items());
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(first * row), to.size(), to.begin());
  }
  return part;
}

std::vector<int> first(int count) {
  std::vector<int> indices;
  for (int i = 0; i < count; ++i) indices.push_back(i);
  return indices;
}

TEST(LearnerGroup, LearnsWithTheBitsOfEachOtherWhatOneLearnerLearns) {
  for (const char* transport : {"shared_memory", "gloo"})
    for (const int count : {2, 3})  // 16 rows over 3 learners: 5, 5 and 6
      for (const std::int64_t replicas : {1, 2}) {
        Learners several(count, replicas, transport);
        const auto alone = learner_of(small_options(), 4, 2);
        Random random(1);
        std::vector<replay::Batch> batches;
        for (int i = 0; i < 100; ++i) batches.push_back(random_batch(*alone, random));
        for (const replay::Batch& batch : batches) update(*alone, batch);
        several.form(first(count));
        several.each(first(count), [&](int index, Learner& learner) {
          std::size_t before = 0;
          for (int i = 0; i < index; ++i)
            before += static_cast<std::size_t>(
                several.learners[static_cast<std::size_t>(i)]->batch_size());
          UpdateReport last;
          for (const replay::Batch& batch : batches)
            last = update(learner, part_of_batch(learner, batch, before));
          EXPECT_EQ(last.version, 100U);
          EXPECT_TRUE(last.compared);
          EXPECT_EQ(last.priorities.size(), static_cast<std::size_t>(learner.batch_size()));
        });
        several.expect_equal(first(count));
        EXPECT_LE(relative_distance(*alone->parameters(), *several.learners[0]->parameters()), 1e-3)
            << count << " x " << replicas;
      }
}

TEST(LearnerGroup, WhoComesLaterTakesTheStateOfWhoIsFurthest) {
  Learners two(2, 2);
  two.form({0});
  Random random(1);
  for (int i = 0; i < 20; ++i) update(*two.learners[0], random_batch(*two.learners[0], random));
  const std::uint64_t furthest = two.learners[0]->state_hash(0);
  two.form({1, 0});  // the newcomer has the lowest rank
  EXPECT_EQ(two.learners[1]->version(), 20U);
  EXPECT_EQ(two.learners[0]->state_hash(0), furthest);
  two.expect_equal({0, 1});
  EXPECT_EQ(two.learners[1]->parameters()->learner_epoch, 2U);
}

TEST(LearnerGroup, ASurvivorGoesOnAloneAndCountsEveryUpdateOnce) {
  Learners two(2);
  two.form({0, 1});
  two.each({0, 1}, [&](int index, Learner& learner) {
    Random random(static_cast<std::uint64_t>(index));
    for (int i = 0; i < 10; ++i) update(learner, random_batch(learner, random));
  });
  two.learners[1].reset();
  Learner& survivor = *two.learners[0];
  Random random(5);
  const auto failed = survivor.update(random_batch(survivor, random));
  ASSERT_FALSE(failed);
  EXPECT_EQ(survivor.version(), 10U);
  two.form({0});
  EXPECT_EQ(survivor.batch_size(), 16);
  EXPECT_EQ(update(survivor, random_batch(survivor, random)).version, 11U);
}

TEST(LearnerGroup, KnowsWhetherAllAreReady) {
  Learners two(2, 2);
  two.form({0, 1});
  two.each({0, 1}, [&](int index, Learner& learner) {
    for (const auto& [zero, one] :
         {std::pair{true, false}, {false, true}, {false, false}, {true, true}})
      EXPECT_EQ(learner.all_ready(index == 0 ? zero : one).value(), zero && one);
  });
}

TEST(LearnerGroup, FindsAStateThatHasComeToDiffer) {
  const TemporaryFolder folder;
  LearnerOptions options = small_options();
  const auto stranger = learner_of(options, 4, 2, 7);
  Random random(1);
  for (int i = 0; i < 99; ++i) update(*stranger, random_batch(*stranger, random));
  ASSERT_TRUE(stranger->save(folder.path()));
  Learners two(2);
  two.form({0, 1});
  two.each({0, 1}, [&](int index, Learner& learner) {
    Random own(static_cast<std::uint64_t>(index));
    for (int i = 0; i < 99; ++i) update(learner, random_batch(learner, own));
    if (index == 1) {
      ASSERT_TRUE(learner.load(folder.path()));
    }
    const auto report = learner.update(random_batch(learner, own));
    ASSERT_FALSE(report);
    EXPECT_THAT(report.error().message, testing::HasSubstr("holds another state"));
  });
}

TEST(LearnerGroup, ScalesObservationsAsTheLeaderDoes) {
  Learners two(2, 1, "shared_memory", true);
  two.form({0, 1});
  two.each({0, 1}, [&](int index, Learner& learner) {
    Random random(static_cast<std::uint64_t>(index));
    for (int i = 0; i < 20; ++i) {
      if (index == 0) {
        models::RunningStatistics seen(4);
        std::vector<float> observation(4);
        for (float& value : observation) value = static_cast<float>(3 + random.normal());
        EXPECT_TRUE(seen.add(observation));
        EXPECT_TRUE(learner.merge_observations(seen.encode()));
      }
      update(learner, random_batch(learner, random));
    }
  });
  two.expect_equal({0, 1});
  EXPECT_EQ(two.learners[0]->parameters()->arrays.at(models::kNormaliserMean).values,
            two.learners[1]->parameters()->arrays.at(models::kNormaliserMean).values);
}

TEST(LearnerGroup, DoesNotWaitForEverForWhoDoesNotCome) {
  LearnerOptions options = small_options();
  options.timeout = std::chrono::milliseconds(300);
  const auto learner = learner_of(options, 4, 2);
  const LearnerGroup group{.rank = 0,
                           .size = 2,
                           .generation = 4,
                           .rendezvous = make_local_link(std::make_shared<RendezvousTable>())};
  EXPECT_FALSE(learner->join(group));
  Random random(1);
  EXPECT_FALSE(learner->all_ready(true));
  ASSERT_TRUE(learner->join({.generation = 5}));
  EXPECT_EQ(update(*learner, random_batch(*learner, random)).version, 1U);
}

}  // namespace
}  // namespace troupe::learners
