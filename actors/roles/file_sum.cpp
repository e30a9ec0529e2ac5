// Implements the sum: a stream, because the file may be larger than memory.
#include "actors/roles/file_sum.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <vector>

#include "replay/checksum.hpp"

namespace troupe::actors {

Result<FileSum> sum_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                "cannot open " + path.string() + ": " + std::strerror(errno));
  FileSum sum;
  std::vector<std::uint8_t> piece(std::size_t{1} << 20);
  while (file) {
    file.read(reinterpret_cast<char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
    const auto count = static_cast<std::size_t>(file.gcount());
    sum.crc32c = replay::crc32c(std::span(piece.data(), count), sum.crc32c);
    sum.bytes += count;
  }
  if (file.bad())
    return fail(ErrorCode::kIo, "cannot read " + path.string() + ": " + std::strerror(errno));
  return sum;
}

}  // namespace troupe::actors
