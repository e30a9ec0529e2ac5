// Implements the checks; ranges come from the options' own descriptions.
#include "learners/validate.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>

namespace troupe::learners {
namespace {

tl::unexpected<Error> invalid(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::string text(double value) {
  std::string result = std::to_string(value);
  result.erase(result.find_last_not_of('0') + 1);
  if (result.back() == '.') result.pop_back();
  return result;
}

// Visits a described struct and keeps the first field that is out of its range.
class RangeCheck {
 public:
  explicit RangeCheck(std::string section) : section_(std::move(section)) {}

  void field(std::string_view name, double value, Bounds bounds, std::string_view) {
    check(name, value, bounds);
  }
  void field(std::string_view name, std::int64_t value, Bounds bounds, std::string_view) {
    check(name, static_cast<double>(value), bounds);
  }
  void field(std::string_view name, Duration value, Bounds bounds, std::string_view) {
    check(name, static_cast<double>(value.count()), bounds);
  }
  void field(std::string_view name, const std::vector<std::int64_t>& values, Bounds bounds,
             std::string_view) {
    for (const std::int64_t value : values) check(name, static_cast<double>(value), bounds);
  }
  void field(std::string_view, const std::vector<std::string>&, Bounds, std::string_view) {}
  void field(std::string_view, bool, std::string_view) {}
  void choice(std::string_view name, const std::string& value,
              std::initializer_list<const char*> choices, std::string_view) {
    if (std::find(choices.begin(), choices.end(), value) == choices.end())
      keep(name, "is '" + value + "', which is none of its choices");
  }

  const std::string& problem() const { return problem_; }

 private:
  void check(std::string_view name, double value, Bounds bounds) {
    const bool low = bounds.low_open ? value > bounds.low : value >= bounds.low;
    const bool high = bounds.high_open ? value < bounds.high : value <= bounds.high;
    if (!low || !high || !std::isfinite(value))
      keep(name, "is " + text(value) + ", which is out of its range");
  }
  void keep(std::string_view name, const std::string& what) {
    if (problem_.empty()) problem_ = section_ + "." + std::string(name) + " " + what + ".";
  }
  std::string section_, problem_;
};

template <class Options>
std::string range_problem(const char* section, Options options) {
  RangeCheck check(section);
  describe(check, options);
  return check.problem();
}

}  // namespace

Result<void> validate(const LearnerOptions& options) {
  for (const std::string& problem :
       {range_problem("learners", options), range_problem("d4pg", options.d4pg)})
    if (!problem.empty()) return invalid(problem);

  const D4pgOptions& d4pg = options.d4pg;
  if (d4pg.v_min >= d4pg.v_max)
    return invalid("d4pg.v_min (" + text(d4pg.v_min) + ") must be below d4pg.v_max (" +
                   text(d4pg.v_max) + ").");
  if (d4pg.policy.empty()) return invalid("d4pg.policy needs the width of at least one layer.");
  if (d4pg.critic.empty()) return invalid("d4pg.critic needs the width of at least one layer.");
  if (d4pg.batch % options.replicas != 0)
    return invalid("d4pg.batch (" + std::to_string(d4pg.batch) +
                   ") cannot be divided evenly over learners.replicas (" +
                   std::to_string(options.replicas) + ").");
  if (options.devices.empty()) return invalid("learners.devices names no device.");
  for (const std::string& device : options.devices)
    if (device != "cpu")
      return invalid("learners.devices names '" + device +
                     "', but this build computes on 'cpu' only.");
  return {};
}

Result<void> validate_d4pg_spec(const EnvSpec& spec) {
  if (spec.action.discrete)
    return invalid("D4PG needs continuous actions, but those of " + spec.name + " are discrete.");
  if (spec.action.elements() < 1)
    return invalid("D4PG needs at least one action element, but " + spec.name + " has none.");
  if (spec.observation_size() < 1)
    return invalid("D4PG learns from numbers, but " + spec.name + " observes none.");
  return {};
}

}  // namespace troupe::learners
