#include "learners/gan/gan_replica.hpp"

#include <ATen/core/grad_mode.h>

#include <cmath>

#include "learners/adam.hpp"
#include "learners/state_hash.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

std::span<float> floats(const at::Tensor& flat) {
  return {flat.mutable_data_ptr<float>(), static_cast<std::size_t>(flat.numel())};
}

GanReplica::Side make_side(const models::ArrayList& arrays, std::uint64_t seed) {
  Random random(seed);
  const auto size = static_cast<std::size_t>(arrays.layout().size);
  return {{arrays, random}, std::vector<float>(size), std::vector<float>(size), 0};
}

// NHWC bytes to an NCHW view of floats from -1 to 1 in the same order, which convolutions like
// best, with noise below the step of a byte, as the authors add it.
at::Tensor dequantised(const PictureRows& rows, std::uint64_t seed) {
  const at::Tensor values =
      at::empty({rows.count, rows.side, rows.side, rows.channels}, at::kFloat);
  Random random(seed);
  const std::uint8_t* byte = rows.pixels;
  for (float& value : floats(values))
    value = (static_cast<float>(*byte++) + static_cast<float>(random.uniform())) / 128 - 1;
  return values.permute({0, 3, 1, 2});
}

}  // namespace

models::SnGanShape shape_of(const GanOptions& options, const PictureSpec& pictures) {
  return {.side = pictures.side,
          .channels = pictures.channels,
          .classes = options.conditional ? pictures.classes : 0,
          .noise = options.noise,
          .generator_width = options.generator_width,
          .discriminator_width = options.discriminator_width};
}

GanInputs gan_inputs(std::int64_t count, std::int64_t width, std::int64_t classes,
                     std::uint64_t seed) {
  Random random(seed);
  GanInputs inputs{at::empty({count, width}), at::empty({count}, at::kLong)};
  for (float& value : floats(inputs.noise)) value = static_cast<float>(random.normal());
  auto* labels = inputs.labels.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i)
    labels[i] = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(classes)));
  return inputs;
}

GanReplica::GanReplica(const models::Generator& generator,
                       const models::Discriminator& discriminator, const GanOptions& options,
                       const PictureSpec& pictures, std::uint64_t seed)
    : generator_model_(generator),
      discriminator_model_(discriminator),
      options_(options),
      pictures_(pictures),
      seed_(seed),
      generator_(make_side(generator.arrays(), stream_seed(seed, "generator"))),
      discriminator_(make_side(discriminator.arrays(), stream_seed(seed, "discriminator"))) {}

// Streams of their own for each replica and step: a resumed run draws what it would have drawn.
GanReplica::Fakes GanReplica::generate(const ReplicaContext& context, std::int64_t count,
                                       std::string_view purpose, std::uint64_t number) {
  const GanInputs inputs = gan_inputs(
      count, options_.noise, pictures_.classes,
      stream_seed(seed_, purpose, number, static_cast<std::uint64_t>(context.id_in_sync())));
  const models::Pass pass{generator_.arrays.parameters().parameters(), generator_.arrays.buffers(),
                          true};
  return {generator_model_.forward(pass, inputs.noise, inputs.labels), inputs.labels};
}

// Layers replace buffers, they never write into them: the tensors themselves need no copy.
GanReplica::Side::Saved GanReplica::Side::save() const {
  return {arrays.parameters().values().clone(), arrays.buffers(), first, second, steps};
}

void GanReplica::Side::restore(Saved saved) {
  arrays.parameters().values().copy_(saved.values);
  arrays.buffers() = std::move(saved.buffers);
  first = std::move(saved.first);
  second = std::move(saved.second);
  steps = saved.steps;
}

Result<GanTotals> GanReplica::update(ReplicaContext& context, const PictureRows& rows) {
  Side::Saved generator = generator_.save(), discriminator = discriminator_.save();
  GanTotals totals;
  auto done = steps(context, rows, totals);
  if (done) return totals;
  generator_.restore(std::move(generator));
  discriminator_.restore(std::move(discriminator));
  return tl::unexpected(done.error());
}

Result<void> GanReplica::steps(ReplicaContext& context, const PictureRows& rows,
                               GanTotals& totals) {
  totals.learning_rate =
      learning_rate(options_.schedule, static_cast<std::int64_t>(updates()), options_.batch);
  for (std::int64_t i = 0; i < options_.discriminator_steps; ++i) {
    PictureRows part = rows.part_of(options_.discriminator_steps, i);
    // Parts of all replicas; their sizes differ by one at most.
    const std::int64_t replicas = context.replicas_in_sync();
    part.global_count = 0;
    for (std::int64_t r = 0; r < replicas; ++r)
      part.global_count +=
          PictureRows::rows_of_part(PictureRows::rows_of_part(rows.global_count, replicas, r),
                                    options_.discriminator_steps, i);
    if (part.global_count == 0) break;
    if (auto done = discriminator_step(context, part, discriminator_.steps, totals); !done)
      return done;
  }
  return generator_step(context, totals);
}

std::vector<double> GanReplica::judge(const ReplicaContext& context, const PictureRows& rows,
                                      std::uint64_t number) {
  Fakes fakes;
  {
    const at::NoGradGuard without_gradient;
    fakes = generate(context, rows.count, "discriminator noise", number);
  }
  const at::Tensor real = dequantised(
      rows,
      stream_seed(seed_, "dequantise", number, static_cast<std::uint64_t>(context.id_in_sync())));
  const at::Tensor labels =
      at::from_blob(const_cast<std::int64_t*>(rows.labels), {rows.count}, at::kLong);
  const models::Pass pass{discriminator_.arrays.parameters().parameters(),
                          discriminator_.arrays.buffers(), true, true};
  const at::Tensor scores = discriminator_model_.forward(pass, at::cat({real, fakes.pictures}),
                                                         at::cat({labels, fakes.labels}));
  const at::Tensor of_real = scores.narrow(0, 0, rows.count),
                   of_fakes = scores.narrow(0, rows.count, rows.count);
  const double share = static_cast<double>(rows.count) / static_cast<double>(rows.global_count);
  const at::Tensor loss = models::discriminator_loss(of_real, of_fakes) * share;
  loss.backward();
  return {loss.item<double>(), of_real.mean().item<double>() * share,
          of_fakes.mean().item<double>() * share};
}

// As a pass over pictures would, which a replica without any has not.
void GanReplica::move_spectral_norms() {
  const at::NoGradGuard without_gradient;
  std::vector<at::Tensor>& buffers = discriminator_.arrays.buffers();
  const std::vector<at::Tensor>& parameters = discriminator_.arrays.parameters().constants();
  for (const auto& [weight, u, v] : discriminator_model_.arrays().spectral())
    models::power_step(parameters[weight].reshape({parameters[weight].size(0), -1}), buffers[u],
                       buffers[v]);
}

Result<void> GanReplica::discriminator_step(ReplicaContext& context, const PictureRows& rows,
                                            std::uint64_t number, GanTotals& totals) {
  discriminator_.arrays.parameters().gradient().zero_();
  std::vector<double> numbers(3);
  if (rows.count > 0)
    numbers = judge(context, rows, number);
  else
    move_spectral_norms();
  auto applied = apply(context, discriminator_, totals.learning_rate, numbers, "discriminator");
  totals.discriminator_loss = numbers[0];
  totals.real_score = numbers[1];
  totals.fake_score = numbers[2];
  return applied;
}

Result<void> GanReplica::generator_step(ReplicaContext& context, GanTotals& totals) {
  generator_.arrays.parameters().gradient().zero_();
  const std::int64_t count = PictureRows::rows_of_part(
      options_.generator_batch, context.replicas_in_sync(), context.id_in_sync());
  const Fakes fakes = generate(context, count, "generator noise", generator_.steps);
  // The discriminator only judges: its arrays get no gradient, and u and v stay.
  const models::Pass pass{discriminator_.arrays.parameters().constants(),
                          discriminator_.arrays.buffers(), true};
  const at::Tensor loss =
      models::generator_loss(discriminator_model_.forward(pass, fakes.pictures, fakes.labels)) *
      (static_cast<double>(count) / static_cast<double>(options_.generator_batch));
  loss.backward();
  std::vector<double> numbers{loss.item<double>()};
  auto applied = apply(context, generator_, totals.learning_rate, numbers, "generator");
  totals.generator_loss = numbers[0];
  return applied;
}

Result<void> GanReplica::apply(ReplicaContext& context, Side& side, double rate,
                               std::vector<double>& numbers, const char* what) {
  const at::Tensor& gradient = side.arrays.parameters().gradient();
  if (context.replicas_in_sync() > 1) {
    const at::Tensor sums =
        at::from_blob(numbers.data(), {static_cast<std::int64_t>(numbers.size())}, at::kDouble);
    const std::vector<at::Tensor> tensors = {gradient, sums};
    if (auto reduced = context.collective().all_reduce(tensors, ReduceOp::kSum, what); !reduced)
      return reduced;
  }
  if (!std::isfinite(squared_norm(floats(gradient))) || !std::isfinite(numbers[0]))
    return fail(ErrorCode::kNotFinite, "a step of the " + std::string(what) + " has the loss " +
                                           std::to_string(numbers[0]) +
                                           " or a gradient that is no number");
  const AdamOptions adam{.learning_rate = rate, .beta1 = options_.beta1, .beta2 = options_.beta2};
  adam_update(adam, ++side.steps, 1, floats(side.arrays.parameters().values()), floats(gradient),
              side.first, side.second);
  return {};
}

std::uint64_t GanReplica::state_hash() const {
  StateHash hash;
  for (const Side* side : {&generator_, &discriminator_}) {
    hash.add(side->steps);
    hash.add(floats(side->arrays.parameters().values()));
    hash.add(side->first);
    hash.add(side->second);
  }
  // Vectors of spectral norms move with the weights alone, batch statistics with each replica's
  // own pictures.
  for (const at::Tensor& buffer : discriminator_.arrays.buffers())
    hash.add(floats(buffer.contiguous()));
  return hash.value();
}

}  // namespace troupe::learners
