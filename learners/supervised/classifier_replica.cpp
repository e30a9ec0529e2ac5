#include "learners/supervised/classifier_replica.hpp"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "learners/adam.hpp"
#include "learners/state_hash.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

std::span<float> floats(const at::Tensor& flat) {
  return {flat.mutable_data_ptr<float>(), static_cast<std::size_t>(flat.numel())};
}

// Computes in bf16 where that is known to be safe, while it lives.
class Autocast {
 public:
  explicit Autocast(bool on) : before_(at::autocast::is_autocast_enabled(at::kCPU)) {
    at::autocast::set_autocast_enabled(at::kCPU, on);
    if (on) at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  }
  ~Autocast() {
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, before_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool before_;
};

std::vector<MomentumSegment> segments_of(const models::ArrayList& list) {
  std::vector<MomentumSegment> segments;
  for (std::size_t i = 0; i < list.layout().segments.size(); ++i) {
    const models::Segment& segment = list.layout().segments[i];
    segments.push_back({segment.offset, segment.elements, list.decays()[i]});
  }
  return segments;
}

models::ImageArrays make_arrays(const models::ResNet& model, std::uint64_t seed) {
  Random random(stream_seed(seed, "initialise"));
  return {model.arrays(), random};
}

}  // namespace

ClassifierReplica::ClassifierReplica(const models::ResNet& model, const ClassifierOptions& options,
                                     std::uint64_t seed)
    : model_(model),
      options_(options),
      arrays_(make_arrays(model, seed)),
      segments_(segments_of(model.arrays())),
      velocity_(static_cast<std::size_t>(model.arrays().layout().size)),
      input_(options, model.shape().channels) {
  const std::span<float> values = floats(arrays_.parameters().values());
  if (options.average > 0) average_.assign(values.begin(), values.end());
  if (options.stages == 1) return;
  const std::vector<at::Device> devices(static_cast<std::size_t>(options.stages), at::kCPU);
  const int threads = std::max(1, at::get_num_threads() / static_cast<int>(options.stages));
  pipeline_ = ResNetPipeline::create(model, devices, threads).value();  // checked with the options
}

std::int64_t ClassifierReplica::rows_of_all(const ReplicaContext& context,
                                            std::int64_t global_count, std::int64_t index) const {
  const std::int64_t replicas = context.replicas_in_sync();
  std::int64_t rows = 0;
  for (std::int64_t r = 0; r < replicas; ++r)
    rows += PictureRows::rows_of_part(PictureRows::rows_of_part(global_count, replicas, r),
                                      options_.accumulate, index);
  return rows;
}

models::Pass ClassifierReplica::training_pass(ReplicaContext& context, std::int64_t global_count,
                                              std::int64_t index) {
  models::Pass pass{arrays_.parameters().parameters(), arrays_.buffers(), true};
  if (!shares_statistics(context, options_)) return pass;
  pass.rows = rows_of_all(context, global_count, index);
  pass.sum = [&context](const at::Tensor& share) {
    return context.all_reduce(share, ReduceOp::kSum);
  };
  return pass;
}

at::Tensor ClassifierReplica::loss_of(const at::Tensor& logits, const PictureRows& rows,
                                      ClassifierTotals& totals) {
  const at::Tensor labels =
      at::from_blob(const_cast<std::int64_t*>(rows.labels), {rows.count}, at::kLong);
  const at::Tensor loss = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum, -100,
                                                 options_.label_smoothing) /
                          static_cast<double>(rows.global_count);
  totals.loss += loss.item<double>();
  totals.accuracy +=
      logits.argmax(1).eq(labels).sum().item<double>() / static_cast<double>(rows.global_count);
  return loss;
}

void ClassifierReplica::backward(ReplicaContext& context, const PictureRows& rows,
                                 std::int64_t index, ClassifierTotals& totals) {
  at::Tensor logits;
  {
    const Autocast autocast(options_.precision == "bf16");
    logits = model_.forward(training_pass(context, rows.global_count, index), input(rows));
  }
  loss_of(logits.to(at::kFloat), rows, totals).backward();
}

void ClassifierReplica::backward_in_stages(const std::vector<PictureRows>& parts,
                                           ClassifierTotals& totals) {
  std::vector<at::Tensor> pictures;
  for (const PictureRows& part : parts) pictures.push_back(input(part));
  pipeline_->run(arrays_, pictures, [&](std::size_t index, const at::Tensor& logits) {
    return loss_of(logits, parts[index], totals);
  });
}

Result<ClassifierTotals> ClassifierReplica::update(ReplicaContext& context,
                                                   const PictureRows& rows) {
  const std::vector<at::Tensor> buffers = arrays_.buffers();  // layers replace, never write
  arrays_.parameters().gradient().zero_();
  ClassifierTotals totals;
  std::vector<PictureRows> parts;
  // A replica without rows has a part in the statistics of the others' all the same.
  const bool shares = shares_statistics(context, options_);
  for (std::int64_t i = 0; i < options_.accumulate; ++i)
    if (const PictureRows part = rows.part_of(options_.accumulate, i);
        part.count > 0 || (shares && rows_of_all(context, rows.global_count, i) > 0))
      parts.push_back(part);
  if (pipeline_)
    backward_in_stages(parts, totals);
  else
    for (std::size_t i = 0; i < parts.size(); ++i)
      backward(context, parts[i], static_cast<std::int64_t>(i), totals);
  if (auto reduced = reduce(context, totals); !reduced) return tl::unexpected(reduced.error());
  totals.gradient_norm = std::sqrt(squared_norm(floats(arrays_.parameters().gradient())));
  if (!std::isfinite(totals.loss) || !std::isfinite(totals.gradient_norm)) {
    arrays_.buffers() = buffers;
    return fail(ErrorCode::kNotFinite,
                "update " + std::to_string(updates_ + 1) + " has the loss " +
                    std::to_string(totals.loss) + " and a gradient of norm " +
                    std::to_string(totals.gradient_norm) + "; nothing was changed");
  }
  totals.learning_rate =
      learning_rate(options_.schedule, static_cast<std::int64_t>(updates_), rows.global_count);
  apply(totals.learning_rate);
  ++updates_;
  return totals;
}

Result<void> ClassifierReplica::reduce(ReplicaContext& context, ClassifierTotals& totals) {
  if (context.replicas_in_sync() == 1) return {};
  const at::Tensor sums = at::empty({2}, at::kDouble);
  auto* values = sums.mutable_data_ptr<double>();
  values[0] = totals.loss;
  values[1] = totals.accuracy;
  const std::array<at::Tensor, 2> tensors = {arrays_.parameters().gradient(), sums};
  const auto reduced =
      context.collective().all_reduce(tensors, ReduceOp::kSum, "gradients of the classifier");
  totals.loss = values[0];
  totals.accuracy = values[1];
  return reduced;
}

void ClassifierReplica::apply(double rate) {
  const MomentumOptions momentum{.momentum = options_.momentum,
                                 .nesterov = options_.nesterov,
                                 .weight_decay = options_.weight_decay,
                                 .trust = options_.optimizer == "lars" ? options_.trust : 0};
  const std::span<float> values = floats(arrays_.parameters().values());
  momentum_update(momentum, rate, segments_, values, floats(arrays_.parameters().gradient()),
                  velocity_);
  if (!average_.empty()) average_update(options_.average, values, average_);
}

ClassifierReplica::Outputs ClassifierReplica::outputs(const PictureRows& rows) {
  const at::NoGradGuard without_gradient;
  std::vector<at::Tensor> parameters = arrays_.parameters().constants();
  if (!average_.empty()) {
    const auto& segments = model_.arrays().layout().segments;
    for (std::size_t i = 0; i < segments.size(); ++i)
      parameters[i] = at::from_blob(average_.data() + segments[i].offset, segments[i].shape);
  }
  const models::Pass pass{parameters, arrays_.buffers()};
  const at::Tensor features = model_.features(pass, input(rows));
  return {model_.classify(pass, features).contiguous(), features.contiguous()};
}

Result<void> ClassifierReplica::evaluate(const PictureRows& rows, Classification& counted) {
  const at::Tensor logits = outputs(rows).logits;
  return counted.add(floats(logits), {rows.labels, static_cast<std::size_t>(rows.count)});
}

std::uint64_t ClassifierReplica::state_hash() const {
  StateHash hash;
  hash.add(updates_);
  hash.add(floats(arrays_.parameters().values()));
  hash.add(velocity_);
  hash.add(average_);
  // Statistics of each replica's own batches differ between replicas, and are no part of it.
  if (options_.batch_norm == "global")
    for (const at::Tensor& buffer : arrays_.buffers()) hash.add(floats(buffer.contiguous()));
  return hash.value();
}

}  // namespace troupe::learners
