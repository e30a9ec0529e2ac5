// The door to libtroupe_episode_files.so, which alone knows HDF5: what it exports under C names,
// for replay/offline/episode_files.cpp.
#pragma once

#include "replay/offline/episode_reader.hpp"
#include "replay/offline/episode_writer.hpp"

namespace troupe::replay {

// "troupe_open_episode_file": open_episode_file for a file that is there and begins like HDF5.
using OpenEpisodeFile = Result<std::unique_ptr<EpisodeFile>>(const std::filesystem::path&,
                                                             const Signature&);
// "troupe_create_episode_writer": EpisodeWriter::create.
using CreateEpisodeWriter = Result<std::unique_ptr<EpisodeWriter>>(const std::filesystem::path&,
                                                                   const EpisodeFileHead&,
                                                                   const EpisodeWriteOptions&);

}  // namespace troupe::replay
