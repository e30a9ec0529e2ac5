// The arithmetic of the memory bound, each term beside its formula.
#include "actors/config/memory.hpp"

#include <algorithm>
#include <sstream>

#include "actors/config/checks.hpp"
#include "replay/signature.hpp"

namespace troupe::actors {
namespace {

// The record of a stored item, and what the uniform and fifo selectors add to it, rounded; a
// priority comes on top.
constexpr double kItemBytes = 17, kPriorityBytes = 6;
// The head of a chunk, its slot, and what an allocator adds.
constexpr double kChunkBytes = 112;

// One raw step: observation, action, reward.
double step_bytes(const replay::Signature& signature) {
  double bytes = sizeof(float);
  for (const Column& column : signature.observation) bytes += static_cast<double>(column.bytes());
  for (const Column& column : signature.step) bytes += static_cast<double>(column.bytes());
  return bytes;
}

// One row of a batch: two observations, action, and reward, discount, weight, version and key.
double row_bytes(const replay::Signature& signature) {
  double bytes = 3 * sizeof(float) + sizeof(std::uint64_t) + 4 * sizeof(std::uint32_t);
  for (const Column& column : signature.observation)
    bytes += 2 * static_cast<double>(column.bytes());
  for (const Column& column : signature.step) bytes += static_cast<double>(column.bytes());
  return bytes;
}

std::int64_t dense_parameters(std::int64_t inputs, const std::vector<std::int64_t>& widths,
                              std::int64_t outputs, bool layer_norm) {
  std::int64_t count = layer_norm && !widths.empty() ? 2 * widths.front() : 0;
  for (const std::int64_t width : widths) {
    count += (inputs + 1) * width;
    inputs = width;
  }
  return count + (inputs + 1) * outputs;
}

template <class... Parts>
std::string joined(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

}  // namespace

std::int64_t parameter_count(const learners::D4pgOptions& options, const EnvSpec& spec) {
  const std::int64_t observation = spec.observation_size(), action = spec.action.elements();
  return dense_parameters(observation, options.policy, action, options.layer_norm) +
         dense_parameters(observation + action, options.critic, options.atoms, options.layer_norm);
}

std::vector<MemoryTerm> memory_terms(const RunOptions& options, const EnvSpec& spec) {
  const replay::Signature signature = replay::signature_of(spec);
  const learners::LearnerOptions& learner = options.learners.learner;
  const double step = step_bytes(signature), row = row_bytes(signature);
  // A segment that ends an episode has one observation more; a step's bytes cover it.
  const std::int64_t flush = limiter_figures(options).flush_steps;
  const double blob = static_cast<double>(flush + 1) * step;
  const ActorOptions& actors = options.actors;
  const std::int64_t groups = sync_groups(options);
  const std::int64_t parameters = options.job == "null" ? 0 : parameter_count(learner.d4pg, spec);

  std::vector<MemoryTerm> terms;
  terms.push_back({"segments under way",
                   joined(actors.count, " actors x ", actors.credit, " credit x (", flush,
                          " + 1) steps x ", step, " B"),
                   static_cast<double>(actors.count * actors.credit) * blob});
  const double item = kItemBytes + (options.replay.selector == "uniform" ? 0 : kPriorityBytes);
  const double capacity = static_cast<double>(options.replay.capacity);
  const double chunk = kChunkBytes / static_cast<double>(flush);
  if (const ReplayDiskOptions& disk = options.replay.disk; disk.folder.empty())
    terms.push_back({"tables",
                     joined(options.replay.capacity, " items x (", step, " + ", item, " + ",
                            kChunkBytes, " / ", flush, ") B"),
                     capacity * (step + item + chunk)});
  else
    terms.push_back({"tables",
                     joined(options.replay.capacity, " items x (", item, " + ", kChunkBytes, " / ",
                            flush, ") B, their steps on disk (", disk.bytes, " B)"),
                     capacity * (item + chunk)});
  terms.push_back({"batches ahead",
                   joined(groups > 1 ? joined(groups, " groups x ") : "", learner.prefetch,
                          " prefetch x ", learner.d4pg.batch, " items x ", row, " B"),
                   static_cast<double>(groups * learner.prefetch * learner.d4pg.batch) * row});
  terms.push_back({"parameter sets", joined("2 x ", parameters, " parameters x 4 B"),
                   2.0 * 4.0 * static_cast<double>(parameters)});
  // Values, two moments, and a snapshot of them on its way to the disk; of each group an update and
  // the answer to it.
  if (is_asynchronous(options))
    terms.push_back(
        {"parameter servers",
         joined("(6 + ", groups, " groups x 2) x ", parameters, " parameters x 4 B"),
         (6.0 + 2.0 * static_cast<double>(groups)) * 4.0 * static_cast<double>(parameters)});
  return terms;
}

std::vector<MemoryTerm> memory_terms(const RunOptions& options,
                                     const learners::PictureSpec& pictures) {
  const learners::LearnerOptions& learner = options.learners.learner;
  const std::int64_t picture = pictures.side * pictures.side * pictures.channels;
  const double sent = static_cast<double>(picture) + 2 * sizeof(std::int64_t) + sizeof(float);
  const double row = static_cast<double>(picture) + 2 * sizeof(std::int64_t);
  const ActorOptions& actors = options.actors;
  const std::int64_t batch = pictures_per_update(options);
  const std::int64_t parameters = options.job == "sngan"
                                      ? learners::generator_parameters(learner.sngan, pictures)
                                      : learners::parameter_count(learner.resnet, pictures);
  return {{"leases under way",
           joined(actors.count, " actors x ", actors.credit, " credit x ", options.data.lease,
                  " pictures x ", sent, " B"),
           static_cast<double>(actors.count * actors.credit * options.data.lease) * sent},
          {"batches ahead",
           joined("(", learner.prefetch, " prefetch + 1) x ", batch, " pictures x ", row, " B"),
           static_cast<double>((learner.prefetch + 1) * batch) * row},
          {"parameter sets", joined("2 x ", parameters, " parameters x 4 B"),
           2.0 * 4.0 * static_cast<double>(parameters)}};
}

}  // namespace troupe::actors
