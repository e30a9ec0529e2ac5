// RAII over MuJoCo's model and data, with its errors and warnings as Results. A Model is immutable
// and shared by every Simulation of the process; a Simulation belongs to one thread at a time.
#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "envs/spec/result.hpp"
#include "envs/spec/spec.hpp"

namespace troupe::envs::mujoco {

// Directory of the Control Suite's MJCF files: environment variable TROUPE_MODEL_PATH, or that of
// the dm_control package which the build found.
std::string model_directory();

class Model {
 public:
  // Compiles `file` of model_directory(), or hands out the one already compiled from the same path
  // while somebody holds it. Built-in textures are shrunk to a pixel: they only serve rendering and
  // would take 12 MB and most of the compile time. kNotFound for a missing file, kInvalidArgument
  // when MuJoCo refuses it. Any thread. O(the file), some 10 ms.
  static Result<std::shared_ptr<const Model>> load(std::string_view file);

  const mjModel* get() const { return model_.get(); }
  const std::string& path() const { return path_; }
  // The same model with actuators switched off, as the Control Suite computes the start of an
  // episode.
  const mjModel* without_actuation() const { return &without_actuation_; }

  // Index of a named element; kNotFound names the element and the file.
  Result<int> id(mjtObj type, const char* name) const;
  // Bounds of the actuators: infinite where the model sets none.
  ActionSpec action_spec() const;

 private:
  struct Deleter {
    void operator()(mjModel* model) const { mj_deleteModel(model); }
  };
  Model(std::unique_ptr<mjModel, Deleter> model, std::string path);
  static Result<std::shared_ptr<const Model>> compile(const std::string& path);

  std::unique_ptr<mjModel, Deleter> model_;
  mjModel without_actuation_;  // shares model_'s arrays
  std::string path_;
};

class Simulation {
 public:
  explicit Simulation(std::shared_ptr<const Model> model);

  const Model& model() const { return *model_; }
  const mjModel* m() const { return model_->get(); }
  mjData* d() { return data_.get(); }
  const mjData* d() const { return data_.get(); }

  // The methods below fail with kInvalidEpisode when MuJoCo raised an error or a warning (bad
  // positions, velocities, accelerations or controls, on which it silently resets itself; full
  // buffers; singular inertia). The message holds MuJoCo's own text. The state is then useless
  // until reset.

  // Default state, then forward().
  Result<void> reset();
  // Recomputes everything that follows from the state, actuators off; does not advance time.
  Result<void> forward();
  // `count` physics steps, leaving positions and velocities and all that depends on them up to date
  // (dm_control's order: mj_step2, (count - 1) x mj_step, mj_step1; with RK4 count x mj_step,
  // mj_step1).
  Result<void> step(int count);

  // State that decides what follows (mjSTATE_INTEGRATION): after load, equal controls give equal
  // bits.
  void save(std::vector<std::uint8_t>& out) const;
  // kCorrupt when the size is wrong or the state is not finite.
  Result<void> load(std::span<const std::uint8_t> bytes);

 private:
  struct Deleter {
    void operator()(mjData* data) const { mj_deleteData(data); }
  };
  // Turns new warnings and a failed guard into an Error.
  Result<void> check(bool completed) const;
  void clear_warnings();

  std::shared_ptr<const Model> model_;
  std::unique_ptr<mjData, Deleter> data_;
  mutable std::vector<mjtNum> state_;  // scratch of save and load
};

}  // namespace troupe::envs::mujoco
