// The planar walker domain: dm_control/suite/walker.py.
#include <numbers>

#include "envs/dmc/rewards.hpp"
#include "envs/dmc/suite_task.hpp"
#include "envs/dmc/tasks.hpp"

namespace troupe::envs::dmc {
namespace {

constexpr double kStandHeight = 1.2;  // m of the torso above which standing is worth 1
constexpr int kPhysicsSteps = 10;     // 25 ms of control in steps of 2.5 ms

class Walker final : public SuiteTask {
 public:
  Walker(std::string name, std::shared_ptr<const mujoco::Model> model, int torso, int speed_sensor,
         double speed)
      : SuiteTask(std::move(name), std::move(model), kPhysicsSteps),
        torso_(torso),
        speed_sensor_(speed_sensor),
        speed_(speed) {
    spec_.observations = {{.name = "orientations", .shape = {14}},
                          {.name = "height", .shape = {}},
                          {.name = "velocity", .shape = {9}}};
  }

  void observe(std::span<double> values) const override {
    double* out = values.data();
    for (int body = 1; body < m()->nbody; ++body) {
      *out++ = d()->xmat[9 * body];      // xx
      *out++ = d()->xmat[9 * body + 2];  // xz
    }
    *out++ = height();
    write(d()->qvel, 9, out);
  }

 private:
  // Limited joints within their range, the torso turned by any angle; it falls to the floor.
  void draw_state(Random& random) override {
    for (int joint = 0; joint < m()->njnt; ++joint) {
      if (m()->jnt_limited[joint])
        draw_limited(joint, random);
      else if (m()->jnt_type[joint] == mjJNT_HINGE)
        simulation_.d()->qpos[m()->jnt_qposadr[joint]] =
            random.uniform(-std::numbers::pi, std::numbers::pi);
    }
  }

  double reward() const override {
    const double standing =
        tolerance(height(), {.low = kStandHeight, .high = kUnbounded, .margin = kStandHeight / 2});
    const double upright = (1 + d()->xmat[9 * torso_ + 8]) / 2;
    const double stand_reward = (3 * standing + upright) / 4;
    if (speed_ == 0) return stand_reward;
    const double moving = tolerance(d()->sensordata[speed_sensor_], {.low = speed_,
                                                                     .high = kUnbounded,
                                                                     .margin = speed_ / 2,
                                                                     .kind = Sigmoid::kLinear,
                                                                     .value_at_margin = 0.5});
    return stand_reward * (5 * moving + 1) / 6;
  }

  double height() const { return d()->xpos[3 * torso_ + 2]; }

  int torso_, speed_sensor_;  // body; index in sensordata of the horizontal speed
  double speed_;
};

}  // namespace

Result<std::unique_ptr<Env>> make_walker(std::string name, double speed) {
  auto model = load_model("walker.xml", {.positions = 9, .velocities = 9, .bodies = 8});
  if (!model) return tl::unexpected(std::move(model.error()));
  const Result<int> torso = (*model)->id(mjOBJ_BODY, "torso");
  if (!torso) return tl::unexpected(torso.error());
  const Result<int> sensor = (*model)->id(mjOBJ_SENSOR, "torso_subtreelinvel");
  if (!sensor) return tl::unexpected(sensor.error());
  const int speed_sensor = (*model)->get()->sensor_adr[*sensor];
  return std::make_unique<Walker>(std::move(name), std::move(*model), *torso, speed_sensor, speed);
}

}  // namespace troupe::envs::dmc
