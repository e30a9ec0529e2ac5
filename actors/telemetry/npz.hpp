// NumPy's .npz, for one- and two-dimensional arrays of float64 and int64: a ZIP archive of .npy
// files. Written by hand because neither cnpy nor a small ZIP writer is packaged, and the arrays
// here are stored uncompressed, which leaves headers and a checksum (zlib's). Formats: PKWARE
// APPNOTE.TXT 6.3 and numpy.lib.format 1.0. Pure functions over bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::actors::telemetry {

struct NpyArray {
  std::vector<std::int64_t> shape;  // row-major; the product is the number of values
  std::variant<std::vector<double>, std::vector<std::int64_t>> values;
};
using NpzArrays = std::vector<std::pair<std::string, NpyArray>>;  // names without ".npy"

// The whole archive. kInvalidArgument: a shape and its values disagree, or 4 GiB are exceeded.
Result<std::string> encode_npz(const NpzArrays& arrays);

// Reads what encode_npz or numpy.savez wrote (stored members, little-endian <f8 and <i8, C order).
// Every length and checksum is checked before it is used. kCorrupt says what is wrong.
Result<NpzArrays> decode_npz(std::string_view bytes);

}  // namespace troupe::actors::telemetry
