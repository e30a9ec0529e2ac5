// The order of operations of dm_control/rl/control.py and dm_control/mujoco/engine.py.
#include "envs/dmc/suite_task.hpp"

#include <utility>

namespace troupe::envs::dmc {

SuiteTask::SuiteTask(std::string name, std::shared_ptr<const mujoco::Model> model,
                     int physics_steps, int settling_steps)
    : simulation_(std::move(model)), settling_steps_(settling_steps) {
  spec_.name = std::move(name);
  spec_.action = simulation_.model().action_spec();
  spec_.physics_steps = physics_steps;
  spec_.control_timestep = m()->opt.timestep * physics_steps;
}

Result<void> SuiteTask::draw(std::uint64_t seed) {
  Random random(seed);
  if (Result<void> done = simulation_.reset(); !done) return done;
  draw_state(random);
  return {};
}

Result<void> SuiteTask::reset(std::uint64_t seed) {
  if (Result<void> done = draw(seed); !done) return done;
  if (settling_steps_ > 0) {
    // The first of these steps still sees the kinematics of the default state, as in the reference.
    if (Result<void> done = simulation_.step(settling_steps_); !done) return done;
    simulation_.d()->time = 0;
  }
  return simulation_.forward();
}

Result<Transition> SuiteTask::step(std::span<const double> action) {
  std::copy(action.begin(), action.end(), simulation_.d()->ctrl);
  if (Result<void> done = simulation_.step(spec_.physics_steps); !done)
    return tl::unexpected(std::move(done.error()));
  return Transition{.reward = reward()};
}

void SuiteTask::draw_limited(int joint, Random& random) {
  simulation_.d()->qpos[m()->jnt_qposadr[joint]] =
      random.uniform(m()->jnt_range[2 * joint], m()->jnt_range[2 * joint + 1]);
}

Result<std::shared_ptr<const mujoco::Model>> load_model(std::string_view file, ModelSizes sizes) {
  Result<std::shared_ptr<const mujoco::Model>> model = mujoco::Model::load(file);
  if (!model) return model;
  const mjModel* m = (*model)->get();
  if (m->nq == sizes.positions && m->nv == sizes.velocities && m->nbody == sizes.bodies)
    return model;
  std::string message = (*model)->path();
  message += " describes another body than the task expects (" + std::to_string(m->nq) +
             " positions, " + std::to_string(m->nv) + " velocities, " + std::to_string(m->nbody) +
             " bodies)";
  return fail(ErrorCode::kInvalidArgument, std::move(message));
}

}  // namespace troupe::envs::dmc
