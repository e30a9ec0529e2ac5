// One class per kind of probe; all share the counters of Probe.
#include "envs/probes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <thread>

#include "envs/spec/random.hpp"
#include "envs/state_bytes.hpp"

namespace troupe::envs::probes {
namespace {

constexpr std::int64_t kDefaultSteps = 50;

// What all probes save: the step in the episode, the step in the environment's life, the random
// stream.
struct Progress {
  std::int64_t episode_step = 0, life_step = 0;
  Random::State random{};
};

// Reward 1, observation 1, one action in [-1, 1]; the others change what differs.
class Probe : public Env {
 public:
  explicit Probe(std::string name) {
    spec_.name = std::move(name);
    spec_.observations = {{.name = "probe", .shape = {1}}};
    spec_.action.low = {-1};
    spec_.action.high = {1};
  }

  const EnvSpec& spec() const override { return spec_; }
  Result<void> reset(std::uint64_t seed) override {
    random_ = Random(seed);
    episode_step_ = 0;
    return {};
  }
  Result<Transition> step(std::span<const double>) override {
    ++episode_step_;
    ++life_step_;
    return Transition{.reward = 1};
  }
  void observe(std::span<double> values) const override { values[0] = 1; }

  void save_state(std::vector<std::uint8_t>& out) const override {
    append(out, Progress{episode_step_, life_step_, random_.state()});
  }
  Result<void> load_state(std::span<const std::uint8_t> bytes) override {
    Progress progress;
    StateReader reader(bytes);
    if (!reader.read(progress) || progress.episode_step < 0 || !load_more(reader) ||
        !reader.at_end())
      return fail(ErrorCode::kCorrupt,
                  "the saved state of environment '" + spec_.name + "' has the wrong size");
    episode_step_ = progress.episode_step;
    life_step_ = progress.life_step;
    random_.set_state(progress.random);
    return {};
  }

 protected:
  // Reads what a probe saves beyond Progress.
  virtual bool load_more(StateReader&) { return true; }

  EnvSpec spec_;
  Random random_;
  std::int64_t episode_step_ = 0, life_step_ = 0;
};

class Const final : public Probe {
 public:
  explicit Const(std::int64_t steps) : Probe("probe/const") { spec_.episode_steps = steps; }
};

class Term final : public Probe {
 public:
  explicit Term(std::int64_t steps) : Probe("probe/term"), steps_(steps) {}
  Result<Transition> step(std::span<const double> action) override {
    Result<Transition> transition = Probe::step(action);
    transition->terminated = episode_step_ >= steps_;
    return transition;
  }
  void observe(std::span<double> values) const override {
    values[0] = static_cast<double>(episode_step_) / static_cast<double>(steps_);
  }

 private:
  std::int64_t steps_;
};

class Nan final : public Probe {
 public:
  Nan(std::int64_t at, bool in_observation)
      : Probe("probe/nan"), at_(at), in_observation_(in_observation) {}
  Result<Transition> step(std::span<const double> action) override {
    Result<Transition> transition = Probe::step(action);
    if (life_step_ == at_ && !in_observation_) transition->reward = kNan;
    return transition;
  }
  void observe(std::span<double> values) const override {
    const bool now = in_observation_ && life_step_ == at_ && episode_step_ > 0;
    values[0] = now ? kNan : 1;
  }

 private:
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::int64_t at_;
  bool in_observation_;
};

enum class Crash { kThrow, kAbort, kHang };

class Crasher final : public Probe {
 public:
  Crasher(std::int64_t at, Crash kind) : Probe("probe/crash"), at_(at), kind_(kind) {}
  Result<Transition> step(std::span<const double> action) override {
    Result<Transition> transition = Probe::step(action);
    if (life_step_ == at_) crash();
    return transition;
  }

 private:
  void crash() const {
    const std::string where = "probe/crash at step " + std::to_string(life_step_);
    if (kind_ == Crash::kThrow) throw std::runtime_error(where + " throws as asked");
    if (kind_ == Crash::kAbort) {
      std::fprintf(stderr, "%s aborts as asked\n", where.c_str());
      std::abort();
    }
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  std::int64_t at_;
  Crash kind_;
};

class Seed final : public Probe {
 public:
  Seed() : Probe("probe/seed") {}
  Result<void> reset(std::uint64_t seed) override {
    Result<void> done = Probe::reset(seed);
    draw_ = random_.uniform();
    return done;
  }
  Result<Transition> step(std::span<const double> action) override {
    Result<Transition> transition = Probe::step(action);
    transition->reward = draw_ = random_.uniform();
    return transition;
  }
  void observe(std::span<double> values) const override { values[0] = draw_; }
  void save_state(std::vector<std::uint8_t>& out) const override {
    Probe::save_state(out);
    append(out, draw_);
  }

 private:
  bool load_more(StateReader& reader) override { return reader.read(draw_); }
  double draw_ = 0;
};

class Box final : public Probe {
 public:
  Box() : Probe("probe/box") {
    spec_.observations = {{.name = "received", .shape = {2}}};
    spec_.action.low = {-0.4, 0};
    spec_.action.high = {0.4, 10};
  }
  Result<void> reset(std::uint64_t seed) override {
    received_ = {0, 0};
    return Probe::reset(seed);
  }
  Result<Transition> step(std::span<const double> action) override {
    Result<Transition> transition = Probe::step(action);
    received_ = {action[0], action[1]};
    transition->reward = received_[1];
    return transition;
  }
  void observe(std::span<double> values) const override {
    std::copy(received_.begin(), received_.end(), values.begin());
  }
  void save_state(std::vector<std::uint8_t>& out) const override {
    Probe::save_state(out);
    append(out, received_);
  }

 private:
  bool load_more(StateReader& reader) override { return reader.read(received_); }
  std::array<double, 2> received_{};
};

class Big final : public Probe {
 public:
  Big() : Probe("probe/big") { spec_.observations = {{.name = "probe", .shape = {1 << 21}}}; }
  void observe(std::span<double> values) const override {
    std::fill(values.begin(), values.end(), static_cast<double>(episode_step_));
  }
};

class Slow final : public Probe {
 public:
  Slow() : Probe("probe/slow") {}
  Result<Transition> step(std::span<const double> action) override {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return Probe::step(action);
  }
};

class Unbounded final : public Probe {
 public:
  Unbounded() : Probe("probe/unbounded") {
    spec_.action.low = {-std::numeric_limits<double>::infinity()};
    spec_.action.high = {std::numeric_limits<double>::infinity()};
  }
};

// A positive number of steps; `otherwise` when `text` is empty, 0 when it is neither.
std::int64_t steps_from(std::string_view text, std::int64_t otherwise) {
  if (text.empty()) return otherwise;
  std::int64_t steps = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  return error == std::errc{} && end == text.data() + text.size() && steps > 0 ? steps : 0;
}

tl::unexpected<Error> bad_argument(std::string_view name, std::string_view argument,
                                   std::string_view wanted) {
  std::string message;
  for (const std::string_view part : {std::string_view("'"), name, std::string_view("@"), argument,
                                      std::string_view("' is not understood: write "), wanted,
                                      std::string_view(", with a positive number of steps")})
    message += part;
  return fail(ErrorCode::kInvalidArgument, std::move(message));
}

// "K:word" split at the colon.
std::pair<std::string_view, std::string_view> split(std::string_view argument) {
  const std::size_t colon = argument.find(':');
  if (colon == std::string_view::npos) return {argument, ""};
  return {argument.substr(0, colon), argument.substr(colon + 1)};
}

}  // namespace

Made make_const(std::string_view argument) {
  const std::int64_t steps = steps_from(argument, kDefaultSteps);
  if (steps == 0) return bad_argument("probe/const", argument, "probe/const or probe/const@T");
  return std::make_unique<Const>(steps);
}

Made make_term(std::string_view argument) {
  const std::int64_t steps = steps_from(argument, kDefaultSteps);
  if (steps == 0) return bad_argument("probe/term", argument, "probe/term or probe/term@T");
  return std::make_unique<Term>(steps);
}

Made make_nan(std::string_view argument) {
  const auto [number, word] = split(argument);
  const std::int64_t at = steps_from(number, 0);
  if (at == 0 || !(word.empty() || word == "reward" || word == "observation"))
    return bad_argument("probe/nan", argument, "probe/nan@K or probe/nan@K:observation");
  return std::make_unique<Nan>(at, word == "observation");
}

Made make_crash(std::string_view argument) {
  const auto [number, word] = split(argument);
  const std::int64_t at = steps_from(number, 0);
  if (at > 0 && word == "throw") return std::make_unique<Crasher>(at, Crash::kThrow);
  if (at > 0 && word == "abort") return std::make_unique<Crasher>(at, Crash::kAbort);
  if (at > 0 && word == "hang") return std::make_unique<Crasher>(at, Crash::kHang);
  return bad_argument("probe/crash", argument,
                      "probe/crash@K:throw, probe/crash@K:abort or probe/crash@K:hang");
}

Made make_seed() { return std::make_unique<Seed>(); }
Made make_box() { return std::make_unique<Box>(); }
Made make_big() { return std::make_unique<Big>(); }
Made make_slow() { return std::make_unique<Slow>(); }
Made make_unbounded() { return std::make_unique<Unbounded>(); }

}  // namespace troupe::envs::probes
