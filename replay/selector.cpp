// The list of selectors. A new kind is a file in replay/selectors/ and a line here.
#include "replay/selector.hpp"

#include "replay/selectors/heap.hpp"
#include "replay/selectors/ordered.hpp"
#include "replay/selectors/prioritised.hpp"
#include "replay/selectors/uniform.hpp"

namespace troupe::replay {

std::span<const std::string_view> selector_names() {
  static constexpr std::string_view kNames[] = {kUniform, kPrioritised, kFifo,
                                                kLifo,    kMaxHeap,     kMinHeap};
  return kNames;
}

std::unique_ptr<Selector> make_selector(std::string_view name, const SelectorOptions& options) {
  if (name == kUniform) return std::make_unique<UniformSelector>();
  if (name == kPrioritised) return std::make_unique<PrioritisedSelector>(options);
  if (name == kFifo) return std::make_unique<FifoSelector>();
  if (name == kLifo) return std::make_unique<LifoSelector>();
  if (name == kMaxHeap) return std::make_unique<HeapSelector>(HeapSelector::First::kLargest);
  if (name == kMinHeap) return std::make_unique<HeapSelector>(HeapSelector::First::kSmallest);
  return nullptr;
}

}  // namespace troupe::replay
