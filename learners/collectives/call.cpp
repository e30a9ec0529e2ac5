// Implements the comparison of calls.
#include "learners/collectives/call.hpp"

#include <sstream>
#include <vector>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

constexpr const char* kKindNames[] = {"all_reduce", "all_gather", "broadcast"};

std::string describe(const at::Tensor& tensor) {
  std::string text = at::toString(tensor.scalar_type());
  text += " [";
  for (const std::int64_t extent : tensor.sizes())
    text += (text.back() == '[' ? "" : ", ") + std::to_string(extent);
  return text + "]";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::string Call::text() const {
  return std::string(kKindNames[static_cast<int>(kind)]) + " '" + std::string(name) + "'";
}

std::optional<ElementType> element_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ElementType::kF32;
    case at::kDouble:
      return ElementType::kF64;
    case at::kInt:
      return ElementType::kI32;
    case at::kLong:
      return ElementType::kI64;
    case at::kHalf:
      return ElementType::kF16;
    case at::kBFloat16:
      return ElementType::kBf16;
    default:
      return std::nullopt;
  }
}

Elements elements_of(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr(), tensor.numel(), *element_type(tensor.scalar_type())};
}

std::span<std::uint8_t> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::uint8_t*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

std::string fault_of(const Call& call, int size) {
  for (std::size_t i = 0; i < call.tensors.size(); ++i) {
    const at::Tensor& tensor = call.tensors[i];
    const std::string which = "tensor " + std::to_string(i);
    if (!tensor.defined()) return which + " is undefined";
    if (!tensor.device().is_cpu() || !tensor.is_contiguous())
      return which + " is not contiguous and on the CPU";
    if (call.kind == CallKind::kAllReduce && !element_type(tensor.scalar_type()))
      return which + " is " + describe(tensor) +
             ", and only f32, f64, i32, i64, f16 and bf16 are reduced";
  }
  if (call.kind == CallKind::kBroadcast && (call.parameter < 0 || call.parameter >= size))
    return "there is no rank " + std::to_string(call.parameter);
  return {};
}

bool agree(const Call& a, const Call& b) {
  if (a.kind != b.kind || a.name != b.name || a.parameter != b.parameter ||
      a.tensors.size() != b.tensors.size())
    return false;
  for (std::size_t i = 0; i < a.tensors.size(); ++i)
    if (a.tensors[i].scalar_type() != b.tensors[i].scalar_type() ||
        a.tensors[i].sizes() != b.tensors[i].sizes())
      return false;
  return true;
}

std::string signature_of(const Call& call) {
  std::string text = call.text() + "\n";
  if (call.kind == CallKind::kAllReduce)
    text += std::string("the operation ") + name_of(static_cast<ReduceOp>(call.parameter)) + "\n";
  else
    text += "the rank " + std::to_string(call.parameter) + "\n";
  text += std::to_string(call.tensors.size()) + " tensors\n";
  for (const at::Tensor& tensor : call.tensors) text += describe(tensor) + "\n";
  return text;
}

std::string difference_of(const std::string& first, const std::string& second,
                          const std::string& one, const std::string& other) {
  const std::vector<std::string> ours = lines_of(first), theirs = lines_of(second);
  const std::size_t common = std::min(ours.size(), theirs.size());
  const std::string start =
      (common == 0 ? "A call" : ours[0]) + " of " + one + " does not match " + other + ": ";
  for (std::size_t i = 0; i < common; ++i) {
    if (ours[i] == theirs[i]) continue;
    if (i == 0) return start + "that called " + theirs[0] + ".";
    const std::string what = i == 1   ? "the operations differ, "
                             : i == 2 ? "the numbers of tensors differ, "
                                      : "tensor " + std::to_string(i - 3) + " is ";
    return start + what + ours[i] + " here and " + theirs[i] + " there.";
  }
  return start + "a tensor after the first " + std::to_string(common) + " lines differs.";
}

}  // namespace troupe::learners
