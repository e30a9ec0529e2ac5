// What the readers of both layouts do with columns. Called under hdf5::guarded.
#pragma once

#include <string>

#include "replay/codec.hpp"
#include "replay/offline/episode.hpp"
#include "replay/offline/hdf5_access.hpp"
#include "replay/offline/layout.hpp"

namespace troupe::replay {

inline void expect_rows(const hdf5::StoredColumn& stored, std::uint64_t rows) {
  if (stored.rows() != rows)
    throw hdf5::Hdf5Fault(ErrorCode::kCorrupt,
                          "dataset '" + stored.name() + "' has " + std::to_string(stored.rows()) +
                              " rows; its episode needs " + std::to_string(rows));
}

inline void expect_elements(const hdf5::StoredColumn& stored, const Column& column) {
  if (stored.elements() != static_cast<std::uint64_t>(column.elements()))
    throw hdf5::Hdf5Fault(ErrorCode::kCorrupt, "dataset '" + stored.name() + "' has " +
                                                   std::to_string(stored.elements()) +
                                                   " numbers a row; column '" + column.name +
                                                   "' of the environment has " +
                                                   std::to_string(column.elements()));
}

// Where the column of a step stands: the action has a name of its own, the rest are extras.
inline hdf5::StoredColumn step_column(const H5::Group& group, const std::string& name) {
  if (name == layout::kActionColumn) return {group, layout::kActions};
  return {hdf5::open_group(group, layout::kExtras), name};
}

// One observation is a dataset of its own; several are a group of them.
inline hdf5::StoredColumn observation_column(const H5::Group& group, const char* name,
                                             const Signature& signature, const Column& column) {
  if (signature.observation.size() == 1 && hdf5::has_dataset(group, name)) return {group, name};
  return {hdf5::open_group(group, name), column.name};
}

// The last look at a finished episode. Throws kCorrupt or kNotFinite.
inline void check_episode(const Episode& episode, const Signature& signature,
                          const std::string& name) {
  if (auto fits = check_shape(episode.steps, signature, {.max_steps = layout::kMostSteps}); !fits)
    throw hdf5::Hdf5Fault(ErrorCode::kCorrupt, name + ": " + fits.error().message);
  if (auto finite = check_finite(episode.steps, signature); !finite)
    throw hdf5::Hdf5Fault(ErrorCode::kNotFinite, name + ": " + finite.error().message);
}

}  // namespace troupe::replay
