// D4RL's flat columns as episodes; part of episode_reader.hpp. Called under hdf5::guarded.
#pragma once

#include <memory>

#include "replay/offline/episode_reader.hpp"
#include "replay/offline/hdf5_access.hpp"

namespace troupe::replay {

// Throws what hdf5_access.hpp throws.
std::unique_ptr<EpisodeFile> open_flat_file(const std::filesystem::path& path,
                                            const H5::H5File& file, const Signature& signature,
                                            EpisodeFileInfo info);

}  // namespace troupe::replay
