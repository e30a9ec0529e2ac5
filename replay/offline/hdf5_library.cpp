// What the library exports.
#include "replay/offline/hdf5_library.hpp"

extern "C" __attribute__((visibility("default"))) const troupe::replay::Hdf5Library*
troupe_hdf5_library() {
  static constexpr troupe::replay::Hdf5Library kLibrary{&troupe::replay::open_hdf5_file,
                                                        &troupe::replay::create_hdf5_writer};
  return &kLibrary;
}
