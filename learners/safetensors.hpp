// Reading and writing safetensors (github.com/huggingface/safetensors, "Format"): 8 bytes header
// length, a JSON header with type, shape and place of each array, then the data. By hand because
// the format's own library is in Rust and Python, and the format is a page long. Values of one
// owner.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "envs/spec/spec.hpp"

namespace troupe::learners {

// Bytes owned by the caller (writing) or by the SafeTensors they came from (reading; no alignment).
struct TensorBytes {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::uint8_t> bytes;
};

std::vector<std::uint8_t> encode_safetensors(const std::map<std::string, TensorBytes>& tensors);

class SafeTensors {
 public:
  // Checks header, types, shapes and places: arrays lie one after the other and fill the file
  // (kCorrupt, naming `name`, e.g. the file).
  static Result<SafeTensors> decode(std::vector<std::uint8_t> bytes, const std::string& name);

  const std::map<std::string, TensorBytes>& tensors() const { return tensors_; }
  // Copies the array into `values`; kCorrupt when it is missing or has another type or shape.
  Result<void> copy(const std::string& tensor, const std::vector<std::int64_t>& shape,
                    std::span<float> values) const;
  Result<void> copy(const std::string& tensor, const std::vector<std::int64_t>& shape,
                    std::span<double> values) const;

 private:
  Result<void> copy_bytes(const std::string& tensor, DType dtype,
                          const std::vector<std::int64_t>& shape,
                          std::span<std::uint8_t> values) const;
  std::string name_;
  std::vector<std::uint8_t> bytes_;
  std::map<std::string, TensorBytes> tensors_;
};

}  // namespace troupe::learners
