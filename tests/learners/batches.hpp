// Synthetic batches and small learners for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "envs/spec/random.hpp"
#include "learners/learner.hpp"
#include "replay/batch.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::learners {

inline EnvSpec spec_of(std::int64_t observation, std::int64_t action) {
  const auto size = static_cast<std::size_t>(action);
  return {.name = "test",
          .observations = {{"position", DType::kF64, {observation}}},
          .action = {.low = std::vector<double>(size, -1), .high = std::vector<double>(size, 1)}};
}

// Relative L2 distance of two published policies.
inline double relative_distance(const models::ParameterSet& a, const models::ParameterSet& b) {
  double difference = 0, size = 0;
  for (const auto& [name, array] : a.arrays)
    for (std::size_t i = 0; i < array.values.size(); ++i) {
      const double left = static_cast<double>(array.values[i]);
      difference += std::pow(left - static_cast<double>(b.arrays.at(name).values[i]), 2);
      size += left * left;
    }
  return std::sqrt(difference / size);
}

inline LearnerOptions small_options() {
  LearnerOptions options;
  options.metrics_every = 1;
  options.d4pg.batch = 16;
  options.d4pg.policy = {16, 12};
  options.d4pg.critic = {20, 8};
  options.d4pg.atoms = 11;
  options.d4pg.v_min = -5;
  options.d4pg.v_max = 5;
  options.d4pg.target_period = 7;
  options.d4pg.learning_rate = 1e-3;
  return options;
}

inline std::unique_ptr<Learner> learner_of(const LearnerOptions& options, std::int64_t observation,
                                           std::int64_t action, std::uint64_t seed = 1) {
  LearnerContext context;
  context.spec = spec_of(observation, action);
  context.seed = seed;
  context.epoch = 3;
  context.deterministic = true;
  Result<std::unique_ptr<Learner>> learner = make_learner("d4pg", options, context);
  EXPECT_TRUE(learner) << learner.error().message;
  return learner ? *std::move(learner) : nullptr;
}

// One item of a batch, for `fill`.
struct Item {
  std::span<float> observation, action, next_observation;
  float &reward, &discount, &weight;
};

inline void fill(replay::Batch& batch, const std::function<void(Item)>& make) {
  const auto items = static_cast<std::size_t>(batch.items());
  const auto row = [&](const char* name, std::size_t i) {
    const std::span<float> all = batch.floats(name);
    return all.subspan(i * (all.size() / items), all.size() / items);
  };
  for (std::size_t i = 0; i < items; ++i) {
    Item item{row("observation", i), row("action", i),      row("next_observation", i),
              row("reward", i)[0],   row("discount", i)[0], row("weight", i)[0]};
    item.weight = 1;
    make(item);
  }
}

inline replay::Batch random_batch(const Learner& learner, Random& random) {
  replay::Batch batch(learner.batch_columns(), learner.batch_size());
  fill(batch, [&](Item item) {
    for (float& value : item.observation) value = static_cast<float>(random.normal());
    for (float& value : item.next_observation) value = static_cast<float>(random.normal());
    for (float& value : item.action) value = static_cast<float>(random.uniform(-1, 1));
    item.reward = static_cast<float>(random.normal());
    item.discount = random.below(5) == 0 ? 0.0F : 0.95F;
    item.weight = static_cast<float>(random.uniform(0.5, 1));
  });
  return batch;
}

inline UpdateReport update(Learner& learner, const replay::Batch& batch) {
  Result<UpdateReport> report = learner.update(batch);
  EXPECT_TRUE(report) << report.error().message;
  return report ? *std::move(report) : UpdateReport{};
}

}  // namespace troupe::learners
