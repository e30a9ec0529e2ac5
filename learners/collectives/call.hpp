// One rank's call of a collective, and whether the calls of two ranks belong together. Plain values
// over the caller's tensors.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "learners/collective.hpp"

namespace troupe::learners {

enum class CallKind : std::uint8_t { kAllReduce, kAllGather, kBroadcast };

struct Call {
  CallKind kind = CallKind::kAllReduce;
  int parameter = 0;  // operation or source rank
  std::span<const at::Tensor> tensors{};
  std::string_view name{};  // of the call site

  std::string text() const;  // "all_reduce 'gradients'"
};

// What reductions take; nothing for other types.
std::optional<ElementType> element_type(at::ScalarType type);
Elements elements_of(const at::Tensor& tensor);  // of such a type
std::span<std::uint8_t> bytes_of(const at::Tensor& tensor);

// Why `call` cannot be made at all by a rank of a group of `size`; empty if it can.
std::string fault_of(const Call& call, int size);

// Whether two ranks' calls belong together. Allocates nothing.
bool agree(const Call& a, const Call& b);

// The call in words, one line per thing that has to be equal, for ranks that see no more than bytes
// of each other: kind and name, operation, number of tensors, then one line per tensor.
std::string signature_of(const Call& call);
// The sentence that says how two signatures, which do differ and may be cut off, differ. `one` and
// `other` are whose they are: "replica 0".
std::string difference_of(const std::string& first, const std::string& second,
                          const std::string& one, const std::string& other);

}  // namespace troupe::learners
