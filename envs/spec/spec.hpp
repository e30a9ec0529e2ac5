// What an environment looks like from outside: named typed columns and a bounded action. Shared by
// every folder; plain values, free to copy between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

// Element types of columns, with their codes on the wire and in checkpoints: never renumber.
enum class DType : std::uint8_t {
  kF32 = 0,
  kF64 = 1,
  kU8 = 2,
  kI32 = 3,
  kI64 = 4,
  kU32 = 5,
  kU64 = 6
};

// Bytes of one element.
std::size_t size_of(DType type);
const char* name_of(DType type);

// One named array per step. `shape` excludes the time axis; an empty shape is a scalar.
struct Column {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;

  std::int64_t elements() const;  // product of shape, 1 for a scalar
  std::size_t bytes() const;      // of one row
  bool operator==(const Column&) const = default;
};

// Continuous: `low`/`high` bound each component, finite. Discrete: choices 0..choices-1, and an
// action is one double holding the choice.
struct ActionSpec {
  bool discrete = false;
  std::int64_t choices = 0;
  std::vector<double> low, high;

  std::int64_t elements() const { return discrete ? 1 : static_cast<std::int64_t>(low.size()); }
  bool operator==(const ActionSpec&) const = default;
};

struct EnvSpec {
  std::string name;  // registry name, e.g. "dmc/cartpole_swingup"
  std::vector<Column>
      observations;  // in the order of the reference; f32 when batched, double inside
  ActionSpec action;
  std::int64_t episode_steps = 0;  // time limit in control steps; 0 = none
  double control_timestep = 0;     // seconds per control step; 0 = no physical time
  int physics_steps = 1;           // physics steps per control step

  std::int64_t observation_size() const;  // elements over the non-u8 columns
  bool operator==(const EnvSpec&) const = default;
};

// 64-bit FNV-1a over names, types, shapes and bounds: two nodes with different hashes must not
// talk.
std::uint64_t hash_of(const EnvSpec& spec);

}  // namespace troupe
