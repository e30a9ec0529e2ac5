// Learners from pictures that apply every update together: threads in the place of their processes,
// the real rendezvous and shared memory between them. What holds for both kinds of learners.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <thread>

#include "envs/spec/random.hpp"
#include "learners/collectives/rendezvous.hpp"
#include "learners/data/picture_columns.hpp"
#include "learners/learner.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::learners {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSide = 32, kClasses = 3, kBatch = 16, kSize = 40;  // an epoch: 16, 16, 8

LearnerOptions options_of(std::int64_t replicas, const std::string& batch_norm) {
  LearnerOptions options;
  options.replicas = replicas;
  options.metrics_every = 1;
  options.timeout = std::chrono::seconds(20);
  options.resnet.batch = kBatch;
  options.resnet.depth = 18;
  options.resnet.width = 4;
  options.resnet.small_stem = true;
  options.resnet.average = 0.9;
  options.resnet.batch_norm = batch_norm;
  options.resnet.schedule = {
      .rate = 0.05, .per_batch = 0, .warm_up = 5, .decay = "constant", .steps = {}};
  options.sngan.batch = options.sngan.generator_batch = kBatch / 2;
  options.sngan.discriminator_steps = 2;
  options.sngan.noise = 8;
  options.sngan.generator_width = options.sngan.discriminator_width = 4;
  options.sngan.schedule.decay = "constant";
  return options;
}

// The batch in turn at a place; pictures of three shades with a gradient and noise.
data::PictureBatch batch_at(const data::DataPlace& place) {
  data::PictureBatch batch;
  batch.epoch = place.epoch;
  batch.begin = place.committed;
  batch.positions = std::min(kBatch, kSize - place.committed);
  const std::int64_t end = batch.begin + batch.positions;
  batch.after = {place.epoch + (end == kSize ? 1 : 0), end == kSize ? 0 : end, 0};
  batch.batch = replay::Batch(data::picture_columns(kSide, 1), batch.positions);
  auto* labels = reinterpret_cast<std::int64_t*>(batch.batch.bytes(1).data());
  for (std::int64_t row = 0; row < batch.positions; ++row) {
    Random random(place.epoch * 1000 + static_cast<std::uint64_t>(batch.begin + row));
    labels[row] = row % kClasses;
    for (std::int64_t i = 0; i < kSide * kSide; ++i)
      batch.batch.bytes(0)[static_cast<std::size_t>(row * kSide * kSide + i)] =
          static_cast<std::uint8_t>(60 * labels[row] + i % 32 +
                                    static_cast<std::int64_t>(random.below(20)));
  }
  return batch;
}

// As the learner's role does it: what rank 0 has in turn, shared, learnt from and committed.
Result<void> turn(Learner& learner, bool leads) {
  std::optional<data::PictureBatch> own;
  if (leads) own = batch_at(learner.place());
  const auto batch = learner.share(leads ? &*own : nullptr);
  if (!batch) return tl::unexpected(batch.error());
  const std::uint64_t before = learner.version();
  const auto updated = learner.update((*batch)->batch);
  if (learner.version() > before) learner.set_place((*batch)->after);
  if (!updated) return tl::unexpected(updated.error());
  return {};
}

struct Kind {
  std::string job, batch_norm = "replica";
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.job << "_" << kind.batch_norm; }

class PictureGroup : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Learner> make(std::int64_t replicas = 1) {
    LearnerContext context;
    context.seed = 3;
    context.pictures = {kSide, 1, kClasses};
    auto made = make_learner(GetParam().job, options_of(replicas, GetParam().batch_norm), context);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }

  // work(rank, learner) of each on a thread of its own.
  template <class Work>
  static void each(const std::vector<Learner*>& learners, Work work) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < learners.size(); ++i)
      threads.emplace_back([&, i] { work(static_cast<int>(i), *learners[i]); });
  }
  void form(const std::vector<Learner*>& learners) {
    ++generation_;
    each(learners, [&](int rank, Learner& learner) {
      const auto joined = learner.join({.rank = rank,
                                        .size = static_cast<int>(learners.size()),
                                        .generation = generation_,
                                        .rendezvous = make_local_link(table_)});
      EXPECT_TRUE(joined) << joined.error().message;
    });
  }
  static void train(const std::vector<Learner*>& learners, int turns) {
    each(learners, [&](int rank, Learner& learner) {
      for (int i = 0; i < turns; ++i) {
        const auto done = turn(learner, rank == 0);
        ASSERT_TRUE(done) << done.error().message;
      }
    });
  }
  static void expect_equal(const std::vector<Learner*>& learners) {
    for (const Learner* learner : learners) {
      EXPECT_EQ(learner->place(), learners[0]->place());
      for (int replica = 0; replica < learner->replicas(); ++replica)
        EXPECT_EQ(learner->state_hash(replica), learners[0]->state_hash(0));
    }
  }
  static double distance(const Learner& a, const Learner& b) {
    double difference = 0, size = 0;
    const auto left = a.parameters(), right = b.parameters();
    for (const auto& [name, array] : left->arrays)
      for (std::size_t i = 0; i < array.values.size(); ++i) {
        const double value = array.values[i];
        difference += std::pow(value - right->arrays.at(name).values[i], 2);
        size += value * value;
      }
    return std::sqrt(difference / size);
  }

  std::shared_ptr<RendezvousTable> table_ = std::make_shared<RendezvousTable>();
  std::uint32_t generation_ = 0;
};

TEST_P(PictureGroup, LearnsWithTheBitsOfEachOtherWhatTheSameReplicasOfOneLearnerLearn) {
  const auto alone = make(4), first = make(2), second = make(2);
  form({first.get(), second.get()});
  train({alone.get()}, 7);
  train({first.get(), second.get()}, 7);
  expect_equal({first.get(), second.get()});
  EXPECT_EQ(first->version(), 7U);
  EXPECT_EQ(second->place(), (data::DataPlace{2, 16, 0}));
  EXPECT_LT(distance(*alone, *first), 1e-3);
}

// 8 rows over 3 learners of 2 replicas with two parts each: some have none.
TEST_P(PictureGroup, ARestWithFewerRowsThanReplicasIsDividedToo) {
  const auto one = make(), two = make(), three = make();
  const std::vector<Learner*> all{one.get(), two.get(), three.get()};
  form(all);
  each(all, [&](int rank, Learner& learner) {
    for (const std::int64_t left : {5, 3, 2, 1}) {
      learner.set_place({0, kSize - left, 0});
      const auto done = turn(learner, rank == 0);
      ASSERT_TRUE(done) << left << ": " << done.error().message;
    }
  });
  expect_equal(all);
  EXPECT_TRUE(std::isfinite(distance(*one, *two)));
  const auto many = make(4);
  for (const std::int64_t left : {5, 3, 2, 1}) {
    many->set_place({0, kSize - left, 0});
    ASSERT_TRUE(turn(*many, true));
    expect_equal({many.get()});
  }
}

TEST_P(PictureGroup, WhoComesLaterTakesStateAndPlaceOfWhoIsFurthest) {
  const auto first = make(2), late = make(2);
  form({first.get()});
  train({first.get()}, 4);
  const std::uint64_t furthest = first->state_hash(0);
  form({late.get(), first.get()});  // the newcomer has the lowest rank
  EXPECT_EQ(late->version(), 4U);
  EXPECT_EQ(late->place(), (data::DataPlace{1, 16, 0}));
  EXPECT_EQ(first->state_hash(0), furthest);
  expect_equal({late.get(), first.get()});
  EXPECT_EQ(distance(*late, *first), 0);  // statistics, too
  EXPECT_EQ(late->parameters()->learner_epoch, 2U);
  train({late.get(), first.get()}, 3);
  expect_equal({late.get(), first.get()});
}

TEST_P(PictureGroup, ASurvivorGoesOnAloneAtItsPlaceAndEveryBatchIsInOneUpdate) {
  auto first = make();
  const auto second = make();
  form({first.get(), second.get()});
  train({first.get(), second.get()}, 4);
  first.reset();  // the one that leads
  const auto failed = turn(*second, false);
  ASSERT_FALSE(failed);
  EXPECT_EQ(second->version(), 4U);
  form({second.get()});
  train({second.get()}, 2);
  EXPECT_EQ(second->version(), 6U);  // as many as batches
  EXPECT_EQ(second->place(), (data::DataPlace{2, 0, 0}));
}

TEST_P(PictureGroup, NobodyMovesWhileTheOneThatLeadsHasNoBatch) {
  const auto first = make(), second = make();
  form({first.get(), second.get()});
  each({first.get(), second.get()}, [&](int, Learner& learner) {
    const auto nothing = learner.share(nullptr);
    ASSERT_TRUE(nothing) << nothing.error().message;
    EXPECT_EQ(*nothing, nullptr);
  });
}

TEST_P(PictureGroup, StatesAreComparedEveryHundredUpdates) {
  const auto first = make(), second = make();
  form({first.get(), second.get()});
  each({first.get(), second.get()}, [&](int rank, Learner& learner) {
    int compared = 0;
    for (int i = 0; i < 100; ++i) {
      auto own = batch_at(learner.place());
      const auto batch = learner.share(rank == 0 ? &own : nullptr);
      ASSERT_TRUE(batch);
      const auto report = learner.update((*batch)->batch);
      ASSERT_TRUE(report) << report.error().message;
      compared += report->compared ? 1 : 0;
    }
    EXPECT_EQ(compared, 1);
  });
}

// Rank 0 writes; all read it and go on to the bits of those that did not stop.
TEST_P(PictureGroup, AResumedGroupGoesOnToTheSameBits) {
  const TemporaryFolder folder;
  const auto first = make(2), second = make(2), again = make(2), other = make(2);
  form({first.get(), second.get()});
  train({first.get(), second.get()}, 3);
  ASSERT_TRUE(first->save(folder.path()));
  train({first.get(), second.get()}, 3);
  for (Learner* learner : {again.get(), other.get()}) {
    ASSERT_TRUE(learner->load(folder.path()));
    learner->set_place({1, 0, 0});
  }
  form({again.get(), other.get()});
  train({again.get(), other.get()}, 3);
  expect_equal({first.get(), second.get(), again.get(), other.get()});
  EXPECT_EQ(distance(*first, *again), 0);
  const auto expected = first->snapshot().value(), found = again->snapshot().value();
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(expected[i].bytes, found[i].bytes) << expected[i].name;
}

INSTANTIATE_TEST_SUITE_P(Jobs, PictureGroup,
                         testing::Values(Kind{"resnet"}, Kind{"resnet", "global"}, Kind{"sngan"}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace troupe::learners
