// The door to libtroupe_episode_files.so, which alone knows HDF5: one C symbol, through which
// replay/offline/episode_files.cpp reaches the rest.
#pragma once

#include "replay/offline/episode_reader.hpp"
#include "replay/offline/episode_writer.hpp"

namespace troupe::replay {

// open_episode_file, for a file that is there and begins like HDF5.
Result<std::unique_ptr<EpisodeFile>> open_hdf5_file(const std::filesystem::path& path,
                                                    const Signature& signature);
// EpisodeWriter::create.
Result<std::unique_ptr<EpisodeWriter>> create_hdf5_writer(const std::filesystem::path& path,
                                                          const EpisodeFileHead& head,
                                                          const EpisodeWriteOptions& options);

struct Hdf5Library {
  decltype(open_hdf5_file)* open;
  decltype(create_hdf5_writer)* create;
};

// What "troupe_hdf5_library" is.
using FindHdf5Library = const Hdf5Library*();

}  // namespace troupe::replay
