#include "learners/supervised/options.hpp"

namespace troupe::learners {

Result<void> check(const ClassifierOptions& options, std::int64_t replicas, std::int64_t channels) {
  const auto refuse = [](const std::string& what) {
    return fail(ErrorCode::kInvalidArgument, what);
  };
  const std::int64_t parts = replicas * options.accumulate;
  if (options.batch % parts != 0)
    return refuse("batch " + std::to_string(options.batch) + " cannot be divided over " +
                  std::to_string(replicas) + " replicas with accumulate " +
                  std::to_string(options.accumulate));
  for (const auto& [name, list] :
       {std::pair{"mean", &options.mean}, {"deviation", &options.deviation}})
    if (!list->empty() && static_cast<std::int64_t>(list->size()) != channels)
      return refuse(std::string(name) + " has " + std::to_string(list->size()) +
                    " numbers, but pictures have " + std::to_string(channels) + " channels");
  return check(options.schedule);
}

}  // namespace troupe::learners
