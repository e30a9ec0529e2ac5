// The environment actor's work on probe environments: what goes out is what was really stepped.
#include "actors/roles/environment_worker.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "actors/roles/worker_file.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
constexpr EnvironmentWorker::Time kNow{};

// One linear layer: action = weight * observation + bias (then the map's clipping).
models::ParameterSetPtr policy(std::int64_t inputs, std::int64_t outputs, float bias,
                               std::uint64_t version = 1) {
  auto set = std::make_shared<models::ParameterSet>();
  set->learner_epoch = 4;
  set->version = version;
  set->policy.push_back({.kind = models::DenseLayer::Kind::kLinear,
                         .inputs = static_cast<std::uint32_t>(inputs),
                         .outputs = static_cast<std::uint32_t>(outputs),
                         .name = "out"});
  set->arrays["out.weight"] = {{outputs, inputs},
                               std::vector<float>(static_cast<std::size_t>(inputs * outputs))};
  set->arrays["out.bias"] = {{outputs},
                             std::vector<float>(static_cast<std::size_t>(outputs), bias)};
  return set;
}

WorkerOptions options(const std::string& environment, std::int64_t environments = 1) {
  return {.environment = environment,
          .time_limit = 0,
          .environments = environments,
          .worker = 2,
          .incarnation = 3,
          .seed = 1,
          .sigma = 0,
          .flush_steps = 7,
          .gather_statistics = false};
}

std::unique_ptr<EnvironmentWorker> make(const WorkerOptions& options, std::int64_t inputs,
                                        std::int64_t outputs, float bias = 0) {
  auto worker = EnvironmentWorker::make(options);
  EXPECT_TRUE(worker) << worker.error().message;
  EXPECT_TRUE((*worker)->set_parameters(policy(inputs, outputs, bias)));
  return std::move(*worker);
}

std::vector<replay::Chunk> run(EnvironmentWorker& worker, int steps,
                               milliseconds max_age = milliseconds{1}) {
  std::vector<replay::Chunk> chunks;
  for (int i = 0; i < steps; ++i) {
    EXPECT_TRUE(worker.step(kNow));
    while (auto chunk = worker.take_chunk(kNow, max_age)) chunks.push_back(std::move(*chunk));
  }
  return chunks;
}

TEST(EnvironmentWorker, EveryStepOfAnEpisodeGoesOutOnceInOrder) {
  auto worker = make(options("probe/const"), 1, 1);
  const auto chunks = run(*worker, 150);  // three episodes of 50
  std::map<std::uint64_t, std::uint32_t> steps;
  std::uint64_t sequence = 0;
  for (const replay::Chunk& chunk : chunks) {
    EXPECT_EQ(chunk.header.worker, 2U);
    EXPECT_EQ(chunk.header.incarnation, 3U);
    EXPECT_EQ(chunk.header.sequence, sequence++);
    EXPECT_EQ(chunk.header.learner_epoch, 4U);
    EXPECT_EQ(chunk.header.first_step, steps[chunk.header.episode]);
    steps[chunk.header.episode] += chunk.header.steps;
    EXPECT_EQ(chunk.header.ends(), steps[chunk.header.episode] == 50);
    EXPECT_NE(chunk.header.end, replay::EpisodeEnd::kTerminated);
  }
  EXPECT_EQ(steps, (std::map<std::uint64_t, std::uint32_t>{{0, 50}, {1, 50}, {2, 50}}));
  int episodes = 0;
  while (const auto episode = worker->take_episode()) {
    ++episodes;
    EXPECT_EQ(episode->episode_return, 50);
    EXPECT_EQ(episode->length, 50);
  }
  EXPECT_EQ(episodes, 3);
}

TEST(EnvironmentWorker, StoresTheActionReallyAppliedWhateverTheNoise) {
  WorkerOptions noisy = options("probe/box");
  noisy.sigma = 3;
  auto worker = make(noisy, 2, 2);
  bool at_bound = false;
  for (const replay::Chunk& chunk : run(*worker, 200)) {
    std::vector<float> actions(chunk.step[0].size() / sizeof(float));
    std::memcpy(actions.data(), chunk.step[0].data(), chunk.step[0].size());
    for (const float action : actions) {
      EXPECT_LE(std::abs(action), 1.0F);
      at_bound = at_bound || std::abs(action) == 1.0F;
    }
  }
  EXPECT_TRUE(at_bound);
}

TEST(EnvironmentWorker, AnInvalidStepNeverGoesOutAndIsTold) {
  auto worker = make(options("probe/nan@20"), 1, 1);
  for (const replay::Chunk& chunk : run(*worker, 120))
    for (const float reward : chunk.reward) EXPECT_TRUE(std::isfinite(reward));
  EXPECT_EQ(worker->counters().invalid_episodes, 1);
  const auto fault = worker->take_fault();
  ASSERT_TRUE(fault);
  EXPECT_NE(fault->find("20"), std::string::npos) << *fault;
}

TEST(EnvironmentWorker, RefusesAPolicyThatDoesNotFit) {
  auto worker = make(options("probe/const"), 1, 1);
  EXPECT_FALSE(worker->set_parameters(policy(5, 1, 0)));
  EXPECT_TRUE(worker->has_parameters());  // the former one still acts
}

TEST(EnvironmentWorker, ARestartedWorkerDoesNotRepeatItsPredecessorsEpisodes) {
  const auto first_observation = [](std::uint32_t incarnation, std::uint64_t seed) {
    WorkerOptions each = options("probe/seed");
    each.incarnation = incarnation;
    each.seed = seed;
    auto worker = make(each, 1, 1);
    return run(*worker, 7).at(0).observation.at(0);
  };
  EXPECT_EQ(first_observation(1, 0), first_observation(1, 0));
  EXPECT_NE(first_observation(1, 0), first_observation(2, 0));
  EXPECT_NE(first_observation(1, 0), first_observation(1, 1));
}

TEST(EnvironmentWorker, ContinuesBitForBitFromItsState) {
  WorkerOptions noisy = options("pendulum", 3);
  noisy.sigma = 0.3;
  noisy.gather_statistics = true;
  auto original = make(noisy, 3, 1, 0.1F);
  run(*original, 230);  // into the second episodes, with open segments
  const auto state = original->save();
  auto restored = make(noisy, 3, 1, 0.1F);
  ASSERT_TRUE(restored->load(state));
  const auto expected = run(*original, 300), got = run(*restored, 300);
  ASSERT_EQ(expected.size(), got.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(expected[i].header, got[i].header);
    EXPECT_EQ(expected[i].observation, got[i].observation);
    EXPECT_EQ(expected[i].step, got[i].step);
    EXPECT_EQ(expected[i].reward, got[i].reward);
  }
  EXPECT_EQ(original->take_statistics(), restored->take_statistics());
}

TEST(EnvironmentWorker, RefusesDamagedStateAndStaysUsable) {
  auto worker = make(options("probe/const", 2), 1, 1);
  run(*worker, 20);
  const auto state = worker->save();
  for (std::size_t size = 0; size < state.size(); ++size) {
    auto other = make(options("probe/const", 2), 1, 1);
    EXPECT_FALSE(other->load(std::span(state.data(), size))) << size;
    EXPECT_TRUE(other->step(kNow));
  }
  auto other_task = make(options("probe/term", 2), 1, 1);
  EXPECT_FALSE(other_task->load(state));
}

TEST(WorkerFile, HoldsWorkerAndUnacknowledgedChunks) {
  const TemporaryFolder folder;
  const auto& directory = folder.path();
  auto worker = make(options("probe/const"), 1, 1);
  run(*worker, 20);
  SendWindow window(2, milliseconds{100});
  window.add({3, 1}, 7, std::make_shared<const std::vector<std::uint8_t>>(5, 1), 4, 2);
  ShardRouter router(2);
  router.set_live({true, true, true});
  EXPECT_EQ(router.route(4, true, {}), 2U);
  const FileContent file = worker_file(*worker, window, router, "actor-2");
  EXPECT_EQ(file.name, "actor-2.state");
  ASSERT_TRUE(write_file(directory / file.name, file.bytes));
  auto restored = make(options("probe/const"), 1, 1);
  SendWindow restored_window(2, milliseconds{100});
  ShardRouter restored_router(0);
  restored_router.set_live({true, true, true});
  ASSERT_TRUE(load_worker(*restored, restored_window, restored_router, directory, "actor-2"));
  ASSERT_EQ(restored_window.size(), 1U);
  EXPECT_EQ(restored_window.next(kNow)->lane, 2U);
  EXPECT_EQ(restored_window.next(kNow)->environment, 4U);
  EXPECT_EQ(restored_router.route(4, false, {}), 2U);
  EXPECT_EQ(restored->save(), worker->save());
  EXPECT_EQ(
      load_worker(*restored, restored_window, restored_router, directory, "actor-9").error().code,
      ErrorCode::kNotFound);
  std::filesystem::resize_file(directory / "actor-2.state", file.bytes.size() - 1);
  const auto cut = load_worker(*restored, restored_window, restored_router, directory, "actor-2");
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("actor-2.state"), std::string::npos);
}

// Each part of the file damaged by itself: none of the three is changed.
TEST(WorkerFile, IsTakenWholeOrNotAtAll) {
  const TemporaryFolder folder;
  auto worker = make(options("probe/const"), 1, 1);
  run(*worker, 20);
  std::vector<std::vector<std::uint8_t>> parts(4);
  SendWindow window(2, milliseconds{100});
  window.add({3, 1}, 7, std::make_shared<const std::vector<std::uint8_t>>(5, 1), 4, 2);
  ShardRouter router(2);
  router.set_live({true, true, true});
  (void)router.route(4, true, {});
  parts[0] = worker->save();
  window.save(parts[1]);
  window.save_lanes(parts[2]);
  router.save(parts[3]);
  for (std::size_t damaged = 0; damaged <= parts.size(); ++damaged) {
    std::vector<std::uint8_t> bytes;
    replay::ByteWriter writer(bytes);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::vector<std::uint8_t> part = parts[i];
      if (i == damaged) part.push_back(0);
      writer.array(std::span<const std::uint8_t>(part));
    }
    ASSERT_TRUE(write_file(folder.path() / "actor-2.state", bytes));
    auto restored = make(options("probe/const"), 1, 1);
    const auto as_new = restored->save();
    SendWindow restored_window(2, milliseconds{100});
    ShardRouter restored_router(0);
    restored_router.set_live({true, true, true});
    const auto loaded =
        load_worker(*restored, restored_window, restored_router, folder.path(), "actor-2");
    const bool whole = damaged == parts.size();
    EXPECT_EQ(loaded.has_value(), whole) << damaged;
    EXPECT_EQ(restored_window.size(), whole ? 1U : 0U) << damaged;
    EXPECT_EQ(restored_router.route(4, false, {}), whole ? 2U : 0U) << damaged;
    EXPECT_EQ(restored->save(), whole ? parts[0] : as_new) << damaged;
  }
}

}  // namespace
}  // namespace troupe::actors
