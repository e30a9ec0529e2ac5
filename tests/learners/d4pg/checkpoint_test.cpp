// Checkpoints: going on is bitwise exact, and damaged or foreign ones change nothing.
#include <gtest/gtest.h>

#include <fstream>

#include "envs/spec/files.hpp"
#include "models/inference/normaliser.hpp"
#include "tests/learners/batches.hpp"

namespace troupe::learners {
namespace {

constexpr const char* kFiles[] = {"learner.json", "parameters.safetensors",
                                  "optimizer.safetensors"};

LearnerOptions options() {
  LearnerOptions result = small_options();
  result.replicas = 2;
  result.d4pg.normalise_observations = true;
  return result;
}

// Without the sync that makes write_file slow.
void overwrite(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void train(Learner& learner, Random& random, int updates) {
  for (int i = 0; i < updates; ++i) {
    const replay::Batch batch = random_batch(learner, random);
    models::RunningStatistics delta(4);
    ASSERT_TRUE(delta.add(batch.floats("observation").first(4)));
    ASSERT_TRUE(learner.merge_observations(delta.encode()));
    update(learner, batch);
  }
}

TEST(Checkpoint, GoesOnBitForBit) {
  const TemporaryFolder folder;
  const auto straight = learner_of(options(), 4, 2), first = learner_of(options(), 4, 2);
  Random straight_random(1), random(1);
  train(*straight, straight_random, 200);
  train(*first, random, 100);
  ASSERT_TRUE(first->save(folder.path()));
  const auto resumed =
      learner_of(options(), 4, 2, 77);  // another seed: everything comes from the files
  const Result<void> loaded = resumed->load(folder.path());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(resumed->version(), 100U);
  train(*resumed, random, 100);
  EXPECT_EQ(resumed->version(), 200U);
  for (int replica = 0; replica < 2; ++replica)
    EXPECT_EQ(resumed->state_hash(replica), straight->state_hash(0));
  const auto expected = straight->parameters(), actual = resumed->parameters();
  for (const auto& [name, array] : expected->arrays)
    EXPECT_EQ(actual->arrays.at(name).values, array.values) << name;
}

TEST(Checkpoint, MayBeLoadedByAnyNumberOfReplicas) {
  const TemporaryFolder folder;
  const auto two = learner_of(options(), 4, 2);
  Random random(1);
  train(*two, random, 5);
  ASSERT_TRUE(two->save(folder.path()));
  LearnerOptions four = options();
  four.replicas = 4;
  const auto learner = learner_of(four, 4, 2);
  ASSERT_TRUE(learner->load(folder.path()));
  EXPECT_EQ(learner->state_hash(3), two->state_hash(0));
}

// A saved checkpoint and a learner that must stay as it is.
class DamagedCheckpoint : public ::testing::Test {
 protected:
  DamagedCheckpoint() : learner_(learner_of(options(), 4, 2)), before_(learner_->state_hash(0)) {
    const auto saved = learner_of(options(), 4, 2);
    Random random(1);
    train(*saved, random, 3);
    EXPECT_TRUE(saved->save(folder_.path()));
  }
  void expect_refused(const std::string& file) {
    const Result<void> loaded = learner_->load(folder_.path());
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().message.find(file), std::string::npos) << loaded.error().message;
    EXPECT_EQ(learner_->state_hash(0), before_);
    EXPECT_EQ(learner_->state_hash(1), before_);
    EXPECT_EQ(learner_->version(), 0U);
  }
  TemporaryFolder folder_;
  std::unique_ptr<Learner> learner_;
  std::uint64_t before_;
};

TEST_F(DamagedCheckpoint, IsRefusedWhenAFileIsMissing) {
  for (const char* file : kFiles) {
    const auto path = folder_.path() / file;
    std::filesystem::rename(path, folder_.path() / "away");
    expect_refused(file);
    std::filesystem::rename(folder_.path() / "away", path);
  }
  EXPECT_TRUE(learner_->load(folder_.path()));
}

TEST_F(DamagedCheckpoint, IsRefusedWhenAFileIsCut) {
  for (const char* file : kFiles) {
    const auto path = folder_.path() / file;
    const std::vector<std::uint8_t> bytes = *read_file(path);
    for (std::size_t size = 0; size < bytes.size() - 2; size += 1 + bytes.size() / 37) {
      overwrite(path, std::span(bytes).first(size));
      expect_refused(file);
    }
    overwrite(path, bytes);
  }
  EXPECT_TRUE(learner_->load(folder_.path()));
}

TEST_F(DamagedCheckpoint, IsRefusedWhenABitIsFlipped) {
  for (const char* file : {"parameters.safetensors", "optimizer.safetensors"}) {
    const auto path = folder_.path() / file;
    const std::vector<std::uint8_t> bytes = *read_file(path);
    for (std::size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 53) {
      std::vector<std::uint8_t> damaged = bytes;
      damaged[at] ^= 16;
      overwrite(path, damaged);
      expect_refused(file);
    }
    overwrite(path, bytes);
  }
}

TEST_F(DamagedCheckpoint, IsRefusedWhenACounterIsChanged) {
  const auto path = folder_.path() / "learner.json";
  std::vector<std::uint8_t> bytes = *read_file(path);
  const std::string text(bytes.begin(), bytes.end());
  const std::size_t at = text.find("\"updates\": 3");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 11] = '4';
  overwrite(path, bytes);
  expect_refused("learner.json");
}

TEST_F(DamagedCheckpoint, IsRefusedByALearnerWithOtherNetworksOrSupport) {
  const auto refuses = [&](const char* words, const std::function<void(D4pgOptions&)>& change) {
    LearnerOptions other = options();
    change(other.d4pg);
    const auto learner = learner_of(other, 4, 2);
    const Result<void> loaded = learner->load(folder_.path());
    ASSERT_FALSE(loaded) << words;
    EXPECT_NE(loaded.error().message.find(words), std::string::npos) << loaded.error().message;
  };
  refuses("d4pg.policy", [](auto& o) { o.policy = {16}; });
  refuses("d4pg.atoms", [](auto& o) { o.atoms = 12; });
  refuses("d4pg.v_max", [](auto& o) { o.v_max = 6; });
  refuses("d4pg.normalise_observations", [](auto& o) { o.normalise_observations = false; });
  EXPECT_FALSE(learner_of(options(), 5, 2)->load(folder_.path()));
}

TEST(Checkpoint, NamesTheFolderItCannotWriteTo) {
  const Result<void> saved = learner_of(options(), 4, 2)->save("/nowhere/at/all");
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().message.find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace troupe::learners
