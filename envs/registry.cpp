// The explicit list of tasks, the look-up, and the advice for a name that is not there.
#include "envs/registry.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "envs/dmc/tasks.hpp"
#include "envs/pendulum.hpp"
#include "envs/probes.hpp"
#include "envs/time_limit.hpp"

namespace troupe::envs {
namespace {

using Made = Result<std::unique_ptr<Env>>;

struct Task {
  std::string_view name;         // what stands before '@'
  std::string_view placeholder;  // "@K" when an argument may follow, else empty
  std::string_view summary;
  std::int64_t time_limit;  // control steps; 0 = none
  std::function<Made(std::string_view argument)> make;
};

// A task that takes no argument.
template <class Function, class... Arguments>
std::function<Made(std::string_view)> plain(Function function, Arguments... arguments) {
  return [=](std::string_view) -> Made { return function(arguments...); };
}

const std::vector<Task>& tasks() {
  static const std::vector<Task> kTasks = {
      {"dmc/cartpole_balance", "", "Keep a pole upright on a cart (Control Suite).", 1000,
       plain(dmc::make_cartpole, "dmc/cartpole_balance", dmc::CartpoleStart::kUpright)},
      {"dmc/cartpole_swingup", "", "Swing a hanging pole up and balance it (Control Suite).", 1000,
       plain(dmc::make_cartpole, "dmc/cartpole_swingup", dmc::CartpoleStart::kHanging)},
      {"dmc/cheetah_run", "", "Planar cheetah, reward for speed up to 10 m/s (Control Suite).",
       1000, plain(dmc::make_cheetah, "dmc/cheetah_run")},
      {"dmc/walker_stand", "", "Planar biped, reward for standing (Control Suite).", 1000,
       plain(dmc::make_walker, "dmc/walker_stand", 0.0)},
      {"dmc/walker_walk", "", "Planar biped, reward for 1 m/s (Control Suite).", 1000,
       plain(dmc::make_walker, "dmc/walker_walk", 1.0)},
      {"dmc/walker_run", "", "Planar biped, reward for 8 m/s (Control Suite).", 1000,
       plain(dmc::make_walker, "dmc/walker_run", 8.0)},
      {"pendulum", "", "Swing up a torque-limited pendulum (Gymnasium's Pendulum-v1).", 200,
       plain(make_pendulum)},
      {"probe/const", "@T", "Reward 1 for ever; truncated after T steps (50).", 50,
       probes::make_const},
      {"probe/term", "@T", "Reward 1; terminates at step T (50); observes t/T.", 0,
       probes::make_term},
      {"probe/nan", "@K[:observation]", "NaN in the reward, or the observation, at step K.", 50,
       probes::make_nan},
      {"probe/crash", "@K:throw|abort|hang", "Throws, aborts or hangs at step K.", 50,
       probes::make_crash},
      {"probe/seed", "", "Observes the draws of its own random stream.", 50,
       plain(probes::make_seed)},
      {"probe/box", "", "Observes the action it received; bounds [-0.4,0.4] x [0,10].", 50,
       plain(probes::make_box)},
      {"probe/big", "", "An observation of 8 MB.", 50, plain(probes::make_big)},
      {"probe/slow", "", "Takes one second a step.", 50, plain(probes::make_slow)},
      {"probe/unbounded", "", "Action bounds that are not finite, which are always refused.", 50,
       plain(probes::make_unbounded)},
  };
  return kTasks;
}

// Edits (insert, remove, replace) that turn `a` into `b`: Levenshtein's distance. O(|a| |b|).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

// Distance to a task's name, or to what follows its "dmc/", whichever is nearer.
std::size_t distance_to(std::string_view asked, std::string_view name) {
  const std::size_t slash = name.find('/');
  const std::size_t whole = edit_distance(asked, name);
  if (slash == std::string_view::npos || asked.find('/') != std::string_view::npos) return whole;
  return std::min(whole, edit_distance(asked, name.substr(slash + 1)));
}

// The (up to three) nearest names that a slip of the fingers could explain.
std::string advice_for(std::string_view asked) {
  std::vector<std::pair<std::size_t, std::string_view>> near;
  for (const Task& task : tasks()) near.emplace_back(distance_to(asked, task.name), task.name);
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const std::size_t limit = std::max<std::size_t>(3, asked.size() / 3);
  std::string advice;
  for (std::size_t i = 0; i < 3 && near[i].first <= limit; ++i)
    advice += (advice.empty() ? "" : ", ") + std::string(near[i].second);
  return advice.empty() ? "; `troupe help environments` lists them"
                        : "; did you mean " + advice + "?";
}

}  // namespace

Result<std::unique_ptr<Env>> make_env(std::string_view name, const EnvConfig& config) {
  if (config.time_limit < 0)
    return fail(ErrorCode::kInvalidArgument, "the time limit of environment '" + std::string(name) +
                                                 "' is negative (" +
                                                 std::to_string(config.time_limit) + ")");
  const std::size_t at = name.find('@');
  const std::string_view base = name.substr(0, at);
  const auto found = std::find_if(tasks().begin(), tasks().end(),
                                  [&](const Task& task) { return task.name == base; });
  if (found == tasks().end())
    return fail(ErrorCode::kNotFound,
                "there is no environment '" + std::string(name) + "'" + advice_for(base));
  if (at != std::string_view::npos && found->placeholder.empty())
    return fail(ErrorCode::kInvalidArgument, "environment '" + std::string(base) +
                                                 "' takes no argument, but '" + std::string(name) +
                                                 "' gives one");
  Made env = found->make(at == std::string_view::npos ? "" : name.substr(at + 1));
  if (!env) return env;
  const std::int64_t own =
      (*env)->spec().episode_steps > 0 ? (*env)->spec().episode_steps : found->time_limit;
  const std::int64_t limit = config.time_limit > 0 ? config.time_limit : own;
  if (limit == 0) return env;
  return std::make_unique<TimeLimit>(std::move(*env), limit);
}

const std::vector<EnvEntry>& env_entries() {
  static const std::vector<EnvEntry> kEntries = [] {
    std::vector<EnvEntry> list;
    for (const Task& task : tasks())
      list.push_back(
          {std::string(task.name) + std::string(task.placeholder), std::string(task.summary)});
    return list;
  }();
  return kEntries;
}

std::vector<std::string> env_names() {
  std::vector<std::string> names;
  for (const Task& task : tasks()) names.emplace_back(task.name);
  return names;
}

}  // namespace troupe::envs
