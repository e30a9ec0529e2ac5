// Cuts episodes of any environment after a number of control steps: truncation, never termination.
// The tasks themselves know no time limit. One TimeLimit belongs to one thread at a time, like its
// Env.
#pragma once

#include <memory>

#include "envs/env.hpp"

namespace troupe::envs {

class TimeLimit final : public Env {
 public:
  // `steps` > 0. The spec is that of `env` with episode_steps = steps.
  TimeLimit(std::unique_ptr<Env> env, std::int64_t steps);

  const EnvSpec& spec() const override { return spec_; }
  Result<void> reset(std::uint64_t seed) override;
  // truncated when the limit is reached; terminated as the task says, even in the same step.
  Result<Transition> step(std::span<const double> action) override;
  void observe(std::span<double> values) const override { env_->observe(values); }
  void observe_bytes(std::size_t index, std::span<std::uint8_t> bytes) const override {
    env_->observe_bytes(index, bytes);
  }
  void save_state(std::vector<std::uint8_t>& out) const override;
  Result<void> load_state(std::span<const std::uint8_t> bytes) override;

  // The environment inside.
  Env& inner() { return *env_; }

 private:
  std::unique_ptr<Env> env_;
  EnvSpec spec_;
  std::int64_t episode_step_ = 0;
};

}  // namespace troupe::envs
