// The cart-pole domain: dm_control/suite/cartpole.py with one pole and the smooth reward.
#include <numbers>

#include "envs/dmc/rewards.hpp"
#include "envs/dmc/suite_task.hpp"
#include "envs/dmc/tasks.hpp"

namespace troupe::envs::dmc {
namespace {

class Cartpole final : public SuiteTask {
 public:
  Cartpole(std::string name, std::shared_ptr<const mujoco::Model> model, int pole,
           CartpoleStart start)
      : SuiteTask(std::move(name), std::move(model), 1), pole_(9 * pole), start_(start) {
    spec_.observations = {{.name = "position", .shape = {3}}, {.name = "velocity", .shape = {2}}};
  }

  void observe(std::span<double> values) const override {
    values[0] = d()->qpos[0];
    values[1] = pole_cosine();
    values[2] = d()->xmat[pole_ + 2];  // xz
    write(d()->qvel, 2, &values[3]);
  }

 private:
  void draw_state(Random& random) override {
    mjData* data = simulation_.d();
    if (start_ == CartpoleStart::kHanging) {
      data->qpos[0] = 0.01 * random.normal();
      data->qpos[1] = std::numbers::pi + 0.01 * random.normal();
    } else {
      data->qpos[0] = random.uniform(-0.1, 0.1);
      data->qpos[1] = random.uniform(-0.034, 0.034);
    }
    data->qvel[0] = 0.01 * random.normal();
    data->qvel[1] = 0.01 * random.normal();
  }

  double reward() const override {
    const double upright = (pole_cosine() + 1) / 2;
    const double centered = (1 + tolerance(d()->qpos[0], {.margin = 2})) / 2;
    const double small_control =
        (4 + tolerance(d()->ctrl[0],
                       {.margin = 1, .kind = Sigmoid::kQuadratic, .value_at_margin = 0})) /
        5;
    const double small_velocity = (1 + tolerance(d()->qvel[1], {.margin = 5})) / 2;
    return upright * small_control * small_velocity * centered;
  }

  double pole_cosine() const { return d()->xmat[pole_ + 8]; }  // zz

  int pole_;  // where the pole's rotation matrix starts in xmat
  CartpoleStart start_;
};

}  // namespace

Result<std::unique_ptr<Env>> make_cartpole(std::string name, CartpoleStart start) {
  auto model = load_model("cartpole.xml", {.positions = 2, .velocities = 2, .bodies = 3});
  if (!model) return tl::unexpected(std::move(model.error()));
  const Result<int> pole = (*model)->id(mjOBJ_BODY, "pole_1");
  if (!pole) return tl::unexpected(pole.error());
  return std::make_unique<Cartpole>(std::move(name), std::move(*model), *pole, start);
}

}  // namespace troupe::envs::dmc
