// The metadata.json that Minari keeps beside a data set's HDF5 file (minari/dataset/
// minari_storage.py and minari/serialization.py of github.com/Farama-Foundation/Minari). Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "envs/spec/spec.hpp"
#include "replay/offline/episode_writer.hpp"

namespace troupe::actors::cli {

// `id` names the data set, as "name-v0". Spaces are those of the stored columns: actions in
// [-1, 1], observations without bounds.
nlohmann::ordered_json minari_metadata(const EnvSpec& spec, const std::string& id,
                                       const replay::EpisodeTotals& totals);

}  // namespace troupe::actors::cli
