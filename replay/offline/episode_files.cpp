// Loads the library that knows HDF5 when the first file is opened or written.
#include <algorithm>
#include <array>
#include <fstream>
#include <system_error>

#include "envs/spec/shared_library.hpp"
#include "replay/offline/hdf5_library.hpp"

namespace troupe::replay {
namespace {

namespace fs = std::filesystem;

Result<const Hdf5Library*> library() {
  static const SharedLibrary kLibrary{"library of episode files", "libtroupe_episode_files.so",
                                      "TROUPE_EPISODE_FILES_LIBRARY"};
  return load_function<FindHdf5Library>(kLibrary, "troupe_hdf5_library")
      .map([](FindHdf5Library* find) { return find(); });
}

}  // namespace

Result<std::unique_ptr<EpisodeFile>> open_episode_file(const fs::path& path,
                                                       const Signature& signature) {
  std::error_code error;
  if (!fs::exists(path, error))
    return fail(ErrorCode::kNotFound, "cannot open " + path.string() + ": no such file");
  if (!is_hdf5_file(path)) return fail(ErrorCode::kCorrupt, path.string() + " is no HDF5 file");
  return library().and_then(
      [&](const Hdf5Library* loaded) { return loaded->open(path, signature); });
}

Result<std::unique_ptr<EpisodeWriter>> EpisodeWriter::create(const fs::path& path,
                                                             const EpisodeFileHead& head,
                                                             const EpisodeWriteOptions& options) {
  return library().and_then(
      [&](const Hdf5Library* loaded) { return loaded->create(path, head, options); });
}

// By hand, because asking the library would mean loading it for every table's file: the signature
// of the HDF5 file format (version 3.0, II.A) stands at 0, or at 512 times a power of two behind
// what its writer put before it.
bool is_hdf5_file(const fs::path& path) {
  constexpr std::array<char, 8> kSignature{'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  const std::uintmax_t size = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  for (std::uintmax_t at = 0; file && at + kSignature.size() <= size;
       at = std::max<std::uintmax_t>(512, 2 * at)) {
    std::array<char, 8> found{};
    file.seekg(static_cast<std::streamoff>(at)).read(found.data(), found.size());
    if (file && found == kSignature) return true;
  }
  return false;
}

}  // namespace troupe::replay
