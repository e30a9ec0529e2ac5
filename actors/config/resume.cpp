// Compares three option sets field by field: saved, given now, and what counts.
#include "actors/config/resume.hpp"

#include <utility>

#include "actors/config/checks.hpp"
#include "actors/config/description.hpp"
#include "actors/config/printer.hpp"
#include "actors/config/scalars.hpp"

namespace troupe::actors {

std::vector<Difference> differences(const RunOptions& saved, const RunOptions& now) {
  RunOptions saved_copy = saved, now_copy = now;
  const Description left = description_of(saved_copy), right = description_of(now_copy);
  std::vector<Difference> found;
  for (std::size_t i = 0; i < left.fields.size(); ++i) {
    std::string saved_value = yaml_value(left.fields[i]), now_value = yaml_value(right.fields[i]);
    if (saved_value != now_value) {
      found.push_back({left.fields[i].key, std::move(saved_value), std::move(now_value)});
    }
  }
  return found;
}

Result<ResumedConfig> resume_config(const std::filesystem::path& saved,
                                    const std::filesystem::path& given,
                                    const std::vector<std::string>& overrides) {
  const auto before = load_config(saved);
  if (!before) return tl::unexpected(before.error());
  const auto now = load_config(given, overrides);
  if (!now) return tl::unexpected(now.error());
  auto resumed = load_config(saved, overrides);
  if (!resumed) return tl::unexpected(resumed.error());

  if ((before->options.actors.count == 0) != (resumed->options.actors.count == 0))
    return fail(ErrorCode::kInvalidArgument,
                "actors.count: this run was begun with " +
                    std::to_string(before->options.actors.count) +
                    "; a run with environment actors counts their steps, one without counts "
                    "updates, so start a new run in another directory");

  const ReplayOptions& drawn = before->options.replay;
  const ReplayOptions& wanted = resumed->options.replay;
  const bool other_powers =
      drawn.selector == "prioritised" && drawn.priority_exponent != wanted.priority_exponent;
  if (before->options.checkpoint.replay && (drawn.selector != wanted.selector || other_powers))
    return fail(
        ErrorCode::kInvalidArgument,
        "replay." +
            std::string(other_powers && drawn.selector == wanted.selector ? "priority_exponent"
                                                                          : "selector") +
            ": this run's saved tables hold no such priorities (it was begun with " +
            drawn.selector + ", priority_exponent " + text_of(drawn.priority_exponent) +
            "); start a new run in another directory, with its experience: `troupe replay "
            "export` it and set replay.prefill");

  // None where all learners are in sync.
  const std::int64_t servers = parameter_servers(before->options);
  if (const std::int64_t others = parameter_servers(resumed->options); servers != others)
    return fail(ErrorCode::kInvalidArgument,
                "learners.sync: this run's optimizer state lies with " + std::to_string(servers) +
                    " parameter servers, not " + std::to_string(others) +
                    "; a run keeps whether its learners are all in sync, and its number of "
                    "learners.parameter_servers, so start a new run in another directory");

  ResumedConfig result{std::move(*resumed), {}};
  for (const Difference& difference : differences(before->options, now->options)) {
    const bool overridden = now->origin(difference.key).kind == Origin::Kind::kCommandLine;
    result.lines.push_back(difference.key + ": this run was saved with " + difference.saved + ", " +
                           now->origin(difference.key).text() + " says " + difference.now +
                           (overridden ? "; the command line counts"
                                       : "; the saved value counts, --set " + difference.key + "=" +
                                             difference.now + " would change it"));
  }
  return result;
}

}  // namespace troupe::actors
