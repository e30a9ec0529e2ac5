// Whole episodes beside the Python reference: same random stream, same actions, doubles within 1e-9
// for state, observation and reward. The reference itself runs here (parity_reference.py).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "envs/dmc/suite_task.hpp"
#include "envs/time_limit.hpp"
#include "tests/envs/helpers.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::envs {
namespace {

using testing::expect_ok;
using testing::value_of;

constexpr double kAllowed = 1e-9;

// The reference's numbers, in the order of parity_reference.py.
std::vector<double> reference(const std::string& task, std::uint64_t seed,
                              const std::vector<double>& actions) {
  const TemporaryFolder folder;
  const std::string in = (folder / "actions").string(), out = (folder / "out").string();
  std::ofstream(in, std::ios::binary)
      .write(reinterpret_cast<const char*>(actions.data()),
             static_cast<std::streamsize>(actions.size() * sizeof(double)));
  const std::string command = std::string(TROUPE_PYTHON) + " " + TROUPE_PARITY_SCRIPT + " " + task +
                              " " + std::to_string(seed) + " " + in + " " + out;
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  std::vector<double> numbers(std::filesystem::file_size(out) / sizeof(double));
  std::ifstream(out, std::ios::binary)
      .read(reinterpret_cast<char*>(numbers.data()),
            static_cast<std::streamsize>(numbers.size() * sizeof(double)));
  return numbers;
}

// Positions and velocities.
std::vector<double> state_of(TimeLimit& env) {
  if (auto* task = dynamic_cast<dmc::SuiteTask*>(&env.inner())) {
    const mjModel* m = task->simulation().m();
    const mjData* d = task->simulation().d();
    std::vector<double> state(d->qpos, d->qpos + m->nq);
    state.insert(state.end(), d->qvel, d->qvel + m->nv);
    return state;
  }
  std::vector<std::uint8_t> bytes;
  env.inner().save_state(bytes);
  std::vector<double> state(bytes.size() / sizeof(double));
  std::memcpy(state.data(), bytes.data(), bytes.size());
  return state;
}

// Walks along the reference's numbers and keeps the largest difference of each kind.
class Comparison {
 public:
  explicit Comparison(std::vector<double> numbers) : numbers_(std::move(numbers)) {}

  double next() { return numbers_.at(at_++); }
  void compare(std::span<const double> ours, double& worst) {
    for (const double value : ours) {
      const double difference = std::abs(value - next());
      if (difference <= worst) continue;
      worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
    }
  }
  bool finished() const { return at_ == numbers_.size(); }

  double state = 0, observation = 0, reward = 0;

 private:
  std::vector<double> numbers_;
  std::size_t at_ = 0;
};

std::vector<double> random_actions(const ActionSpec& action, std::int64_t steps) {
  Random random(99);
  std::vector<double> actions;
  for (std::int64_t step = 0; step < steps; ++step)
    for (std::size_t i = 0; i < action.low.size(); ++i)
      actions.push_back(random.uniform(action.low[i], action.high[i]));
  return actions;
}

void compare_header(Comparison& reference, const EnvSpec& spec, std::int64_t steps,
                    std::size_t state_size) {
  EXPECT_EQ(reference.next(), steps);
  EXPECT_EQ(reference.next(), spec.observation_size());
  EXPECT_EQ(reference.next(), spec.action.elements());
  EXPECT_EQ(reference.next(), state_size);
  EXPECT_NEAR(reference.next(), spec.episode_steps, 1e-6);
  EXPECT_NEAR(reference.next(), spec.control_timestep, 1e-12);
  for (const double bound : spec.action.low) EXPECT_EQ(reference.next(), bound);
  for (const double bound : spec.action.high) EXPECT_EQ(reference.next(), bound);
}

class Parity : public ::testing::TestWithParam<const char*> {};

TEST_P(Parity, HoldsOverAWholeEpisodeResetIncluded) {
  constexpr std::uint64_t kSeed = 31;
  auto made = value_of(make_env(GetParam()));
  auto& env = dynamic_cast<TimeLimit&>(*made);
  const EnvSpec& spec = env.spec();
  const auto actions = random_actions(spec.action, spec.episode_steps);
  Comparison reference_numbers(reference(GetParam(), kSeed, actions));
  std::vector<double> observation(static_cast<std::size_t>(spec.observation_size()));

  expect_ok(env.reset(kSeed));
  compare_header(reference_numbers, spec, spec.episode_steps, state_of(env).size());
  env.observe(observation);
  reference_numbers.compare(state_of(env), reference_numbers.state);
  reference_numbers.compare(observation, reference_numbers.observation);
  ASSERT_LE(reference_numbers.state, kAllowed) << "the episode starts elsewhere";

  const auto width = spec.action.low.size();
  for (std::int64_t step = 1; step <= spec.episode_steps; ++step) {
    const auto first = static_cast<std::size_t>(step - 1) * width;
    const Transition transition = value_of(env.step(std::span(actions).subspan(first, width)));
    env.observe(observation);
    reference_numbers.compare(state_of(env), reference_numbers.state);
    reference_numbers.compare(observation, reference_numbers.observation);
    reference_numbers.compare({&transition.reward, 1}, reference_numbers.reward);
    ASSERT_EQ(reference_numbers.next(), transition.truncated) << "at step " << step;
    ASSERT_EQ(reference_numbers.next(), 1) << "the reference bootstraps at the limit as we do";
    ASSERT_FALSE(transition.terminated);
  }
  EXPECT_TRUE(reference_numbers.finished());
  EXPECT_LE(reference_numbers.state, kAllowed);
  EXPECT_LE(reference_numbers.observation, kAllowed);
  EXPECT_LE(reference_numbers.reward, kAllowed);
  std::printf("largest differences: state %.3g, observation %.3g, reward %.3g\n",
              reference_numbers.state, reference_numbers.observation, reference_numbers.reward);
}

INSTANTIATE_TEST_SUITE_P(Tasks, Parity,
                         ::testing::Values("dmc/cartpole_balance", "dmc/cartpole_swingup",
                                           "dmc/cheetah_run", "dmc/walker_stand", "dmc/walker_walk",
                                           "dmc/walker_run", "pendulum"),
                         [](const auto& task) {
                           std::string name = task.param;
                           for (char& c : name)
                             if (c == '/') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace troupe::envs
