// See evaluation_log.hpp. One thread.
#include "actors/telemetry/evaluation_log.hpp"

#include <algorithm>
#include <cmath>

#include "actors/telemetry/npz.hpp"
#include "envs/spec/files.hpp"

namespace troupe::actors::telemetry {
namespace {

using Entries = std::vector<EvaluationLog::Entry>;

template <class Value>
const std::vector<Value>* find_values(const NpzArrays& arrays, const char* name,
                                      std::size_t dimensions, std::vector<std::int64_t>* shape) {
  for (const auto& [key, array] : arrays) {
    if (key != name || array.shape.size() != dimensions) continue;
    *shape = array.shape;
    return std::get_if<std::vector<Value>>(&array.values);
  }
  return nullptr;
}

Result<Entries> to_entries(const NpzArrays& arrays) {
  std::vector<std::int64_t> steps_shape, results_shape, lengths_shape;
  const auto* steps = find_values<std::int64_t>(arrays, "timesteps", 1, &steps_shape);
  const auto* results = find_values<double>(arrays, "results", 2, &results_shape);
  const auto* lengths = find_values<std::int64_t>(arrays, "ep_lengths", 2, &lengths_shape);
  if (!steps || !results || !lengths || results_shape != lengths_shape ||
      results_shape[0] != steps_shape[0]) {
    return fail(
        ErrorCode::kCorrupt,
        "it does not hold timesteps [n], results [n, episodes] and ep_lengths [n, episodes]");
  }
  const auto width = static_cast<std::size_t>(results_shape[1]);
  Entries entries;
  for (std::size_t row = 0; row < steps->size(); ++row) {
    EvaluationLog::Entry entry{.actor_steps = (*steps)[row], .evaluation = {}};
    for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
      const bool is_filling = std::isnan((*results)[i]) && (*lengths)[i] == 0;
      if (is_filling) continue;
      entry.evaluation.returns.push_back((*results)[i]);
      entry.evaluation.lengths.push_back((*lengths)[i]);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

Result<EvaluationLog> EvaluationLog::open(std::filesystem::path path,
                                          std::int64_t restored_actor_steps) {
  EvaluationLog log(std::move(path));
  const auto content = read_text(log.path_);
  if (!content && content.error().code == ErrorCode::kNotFound) return log;
  if (!content) return tl::unexpected(content.error());
  const auto arrays = decode_npz(*content);
  const auto entries = arrays ? to_entries(*arrays) : tl::unexpected(arrays.error());
  if (!entries) {
    return fail(ErrorCode::kCorrupt,
                "'" + log.path_.string() + "' cannot be continued: " + entries.error().message);
  }
  for (const Entry& entry : *entries) {
    if (entry.actor_steps <= restored_actor_steps) log.add(entry.actor_steps, entry.evaluation);
  }
  log.needs_save_ = log.entries_.size() != entries->size();
  return log;
}

void EvaluationLog::add(std::int64_t actor_steps, Evaluation evaluation) {
  const auto place = std::lower_bound(
      entries_.begin(), entries_.end(), actor_steps,
      [](const Entry& entry, std::int64_t steps) { return entry.actor_steps < steps; });
  evaluation.lengths.resize(evaluation.returns.size());
  if (place != entries_.end() && place->actor_steps == actor_steps) {
    place->evaluation = std::move(evaluation);
  } else {
    entries_.insert(place, {actor_steps, std::move(evaluation)});
  }
  needs_save_ = true;
}

Result<void> EvaluationLog::save() {
  std::size_t width = 0;
  for (const Entry& entry : entries_) width = std::max(width, entry.evaluation.returns.size());
  std::vector<std::int64_t> steps, lengths;
  std::vector<double> results;
  for (const auto& [actor_steps, evaluation] : entries_) {
    steps.push_back(actor_steps);
    results.insert(results.end(), evaluation.returns.begin(), evaluation.returns.end());
    lengths.insert(lengths.end(), evaluation.lengths.begin(), evaluation.lengths.end());
    results.resize(steps.size() * width, kUnknown);
    lengths.resize(steps.size() * width, 0);
  }
  const auto rows = static_cast<std::int64_t>(steps.size());
  const std::vector<std::int64_t> shape = {rows, static_cast<std::int64_t>(width)};
  const auto bytes = encode_npz({{"timesteps", {{rows}, std::move(steps)}},
                                 {"results", {shape, std::move(results)}},
                                 {"ep_lengths", {shape, std::move(lengths)}}});
  if (!bytes) return tl::unexpected(bytes.error());
  auto replaced = write_file(path_, *bytes);
  if (replaced) needs_save_ = false;
  return replaced;
}

}  // namespace troupe::actors::telemetry
