// The cheetah domain: dm_control/suite/cheetah.py.
#include "envs/dmc/rewards.hpp"
#include "envs/dmc/suite_task.hpp"
#include "envs/dmc/tasks.hpp"

namespace troupe::envs::dmc {
namespace {

constexpr double kRunSpeed = 10;     // m/s above which the reward is 1
constexpr int kSettlingSteps = 200;  // physics steps before an episode starts

class Cheetah final : public SuiteTask {
 public:
  Cheetah(std::string name, std::shared_ptr<const mujoco::Model> model, int speed_sensor)
      : SuiteTask(std::move(name), std::move(model), 1, kSettlingSteps),
        speed_sensor_(speed_sensor) {
    spec_.observations = {{.name = "position", .shape = {8}}, {.name = "velocity", .shape = {9}}};
  }

  // Without the horizontal position, so that the task looks the same everywhere.
  void observe(std::span<double> values) const override {
    write(d()->qvel, 9, write(d()->qpos + 1, 8, values.data()));
  }

 private:
  void draw_state(Random& random) override {
    for (int joint = 0; joint < m()->njnt; ++joint)
      if (m()->jnt_limited[joint]) draw_limited(joint, random);
  }

  double reward() const override {
    return tolerance(d()->sensordata[speed_sensor_], {.low = kRunSpeed,
                                                      .high = kUnbounded,
                                                      .margin = kRunSpeed,
                                                      .kind = Sigmoid::kLinear,
                                                      .value_at_margin = 0});
  }

  int speed_sensor_;  // index in sensordata of the horizontal speed
};

}  // namespace

Result<std::unique_ptr<Env>> make_cheetah(std::string name) {
  auto model = load_model("cheetah.xml", {.positions = 9, .velocities = 9, .bodies = 8});
  if (!model) return tl::unexpected(std::move(model.error()));
  const Result<int> sensor = (*model)->id(mjOBJ_SENSOR, "torso_subtreelinvel");
  if (!sensor) return tl::unexpected(sensor.error());
  const int speed = (*model)->get()->sensor_adr[*sensor];
  return std::make_unique<Cheetah>(std::move(name), std::move(*model), speed);
}

}  // namespace troupe::envs::dmc
