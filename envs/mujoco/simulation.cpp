// Steps one mjData and looks at its warning counters after each call.
#include "envs/mujoco/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <new>

#include "envs/mujoco/guard.hpp"
#include "envs/state_bytes.hpp"

namespace troupe::envs::mujoco {

Simulation::Simulation(std::shared_ptr<const Model> model)
    : model_(std::move(model)), data_(mj_makeData(model_->get())) {
  if (!data_) throw std::bad_alloc();
  state_.resize(static_cast<std::size_t>(mj_stateSize(m(), mjSTATE_INTEGRATION)));
}

Result<void> Simulation::reset() {
  const mjModel* model = m();
  mjData* data = d();
  if (!guarded([&] { mj_resetData(model, data); })) return check(false);
  return forward();
}

Result<void> Simulation::forward() {
  const mjModel* model = model_->without_actuation();
  mjData* data = d();
  return check(guarded([&] { mj_forward(model, data); }));
}

Result<void> Simulation::step(int count) {
  const mjModel* model = m();
  mjData* data = d();
  return check(guarded([&] {
    int remaining = count;
    if (model->opt.integrator != mjINT_RK4) {
      mj_step2(model, data);
      --remaining;
    }
    for (; remaining > 0; --remaining) mj_step(model, data);
    mj_step1(model, data);
  }));
}

Result<void> Simulation::check(bool completed) const {
  if (!completed)
    return fail(ErrorCode::kInvalidEpisode, "MuJoCo raised an error: " + last_error());
  for (int i = 0; i < mjNWARNING; ++i) {
    const mjWarningStat& warning = d()->warning[i];
    if (warning.number > 0)
      return fail(ErrorCode::kInvalidEpisode,
                  std::string("MuJoCo warned: ") +
                      mju_warningText(i, static_cast<std::size_t>(warning.lastinfo)));
  }
  return {};
}

void Simulation::clear_warnings() {
  std::fill(std::begin(d()->warning), std::end(d()->warning), mjWarningStat{});
}

void Simulation::save(std::vector<std::uint8_t>& out) const {
  mj_getState(m(), d(), state_.data(), mjSTATE_INTEGRATION);
  append(out, std::span<const mjtNum>(state_));
}

Result<void> Simulation::load(std::span<const std::uint8_t> bytes) {
  StateReader reader(bytes);
  if (!reader.read(std::span<mjtNum>(state_)) || !reader.at_end())
    return fail(ErrorCode::kCorrupt, "a saved MuJoCo state has " + std::to_string(bytes.size()) +
                                         " bytes, not " +
                                         std::to_string(state_.size() * sizeof(mjtNum)));
  if (!std::all_of(state_.begin(), state_.end(), [](mjtNum x) { return std::isfinite(x); }))
    return fail(ErrorCode::kCorrupt, "a saved MuJoCo state is not finite");
  const mjModel* model = m();
  mjData* data = d();
  const mjtNum* state = state_.data();
  clear_warnings();
  // mj_step1 recomputes what step() expects to find up to date.
  return check(guarded([&] {
    mj_resetData(model, data);
    mj_setState(model, data, state, mjSTATE_INTEGRATION);
    mj_step1(model, data);
  }));
}

}  // namespace troupe::envs::mujoco
