// Makes queues and stacks of a table's parts.
#include "replay/table_types.hpp"

#include <utility>

#include "replay/selector.hpp"

namespace troupe::replay {
namespace {

TableOptions once_each(TableOptions options, LimiterKind kind, std::int64_t size) {
  options.capacity = size;
  options.limiter = {.kind = kind, .size = size};
  options.selector = options.remover = kind == LimiterKind::kQueue ? kFifo : kLifo;
  options.max_times_sampled = 1;
  return options;
}

}  // namespace

TableOptions queue_options(TableOptions options, std::int64_t size) {
  return once_each(std::move(options), LimiterKind::kQueue, size);
}

TableOptions stack_options(TableOptions options, std::int64_t size) {
  return once_each(std::move(options), LimiterKind::kStack, size);
}

}  // namespace troupe::replay
