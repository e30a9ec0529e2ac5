// Dynamics and reward in the order of operations of gymnasium/envs/classic_control/pendulum.py, so
// that doubles agree with it.
#include "envs/pendulum.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "envs/spec/random.hpp"
#include "envs/state_bytes.hpp"

namespace troupe::envs {
namespace {

constexpr double kMaxSpeed = 8, kMaxTorque = 2, kTimestep = 0.05, kGravity = 10, kMass = 1,
                 kLength = 1;
constexpr double kPi = std::numbers::pi;

// To [-π, π), by the floored remainder.
double wrap(double angle) {
  const double shifted = angle + kPi;
  double remainder = std::fmod(shifted, 2 * kPi);
  if (remainder < 0) remainder += 2 * kPi;
  return remainder - kPi;
}

class Pendulum final : public Env {
 public:
  Pendulum() {
    spec_.name = "pendulum";
    spec_.observations = {{.name = "state", .shape = {3}}};
    spec_.action.low = {-kMaxTorque};
    spec_.action.high = {kMaxTorque};
    spec_.control_timestep = kTimestep;
  }

  const EnvSpec& spec() const override { return spec_; }

  Result<void> reset(std::uint64_t seed) override {
    Random random(seed);
    angle_ = random.uniform(-kPi, kPi);
    speed_ = random.uniform(-1, 1);
    return {};
  }

  Result<Transition> step(std::span<const double> action) override {
    const double torque = std::clamp(action[0], -kMaxTorque, kMaxTorque);
    const double wrapped = wrap(angle_);
    const double cost = wrapped * wrapped + 0.1 * (speed_ * speed_) + 0.001 * (torque * torque);
    const double acceleration = 3 * kGravity / (2 * kLength) * std::sin(angle_) +
                                3.0 / (kMass * (kLength * kLength)) * torque;
    speed_ = std::clamp(speed_ + acceleration * kTimestep, -kMaxSpeed, kMaxSpeed);
    angle_ += speed_ * kTimestep;
    return Transition{.reward = -cost};
  }

  void observe(std::span<double> values) const override {
    values[0] = std::cos(angle_);
    values[1] = std::sin(angle_);
    values[2] = speed_;
  }

  void save_state(std::vector<std::uint8_t>& out) const override {
    append(out, angle_);
    append(out, speed_);
  }

  Result<void> load_state(std::span<const std::uint8_t> bytes) override {
    StateReader reader(bytes);
    double angle = 0, speed = 0;
    if (!reader.read(angle) || !reader.read(speed) || !reader.at_end())
      return fail(ErrorCode::kCorrupt, "the saved state of environment 'pendulum' is " +
                                           std::to_string(bytes.size()) + " bytes, not 16");
    angle_ = angle;
    speed_ = speed;
    return {};
  }

 private:
  EnvSpec spec_;
  double angle_ = 0, speed_ = 0;
};

}  // namespace

Result<std::unique_ptr<Env>> make_pendulum() { return std::make_unique<Pendulum>(); }

}  // namespace troupe::envs
