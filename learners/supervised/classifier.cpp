#include "learners/supervised/classifier.hpp"

#include <array>
#include <utility>

#include "learners/checkpoint_files.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

using Json = nlohmann::json;

constexpr const char *kAlgorithm = "resnet", *kVelocity = "velocity.", *kAverage = "average.";
// Options that give the stored arrays their shape and meaning.
constexpr std::array kFixedOptions = {"depth", "width", "small_stem"};

std::span<const float> floats(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace

Result<std::unique_ptr<Classifier>> Classifier::create(const ClassifierOptions& options,
                                                       const LearnerOptions& placement,
                                                       const PictureSpec& pictures,
                                                       const LearnerContext& context) {
  if (auto good = check(options, placement.replicas, pictures.channels); !good)
    return tl::unexpected(good.error());
  auto model = models::ResNet::create(shape_of(options, pictures));
  if (!model) return tl::unexpected(model.error());
  std::unique_ptr<Classifier> classifier(
      new Classifier(options, placement, pictures, context, *std::move(model)));
  if (auto made = classifier->make_replicas(); !made) return tl::unexpected(made.error());
  return classifier;
}

Classifier::Classifier(const ClassifierOptions& options, const LearnerOptions& placement,
                       const PictureSpec& pictures, const LearnerContext& context,
                       models::ResNet model)
    : options_(options),
      placement_(placement),
      pictures_(pictures),
      context_(context),
      model_(std::move(model)),
      replicas_(static_cast<std::size_t>(placement.replicas)),
      totals_(static_cast<std::size_t>(placement.replicas)) {}

Result<void> Classifier::make_replicas() {
  local_ = make_local_replicas(replicas(), static_cast<int>(placement_.threads));
  return local_->run(0, [&](int i, ReplicaContext& context) -> Result<void> {
    replicas_[static_cast<std::size_t>(i)] =
        std::make_unique<ClassifierReplica>(model_, options_, context, context_.seed);
    return {};
  });
}

std::vector<Column> Classifier::batch_columns() const {
  return {{"picture", DType::kU8, {pictures_.side, pictures_.side, pictures_.channels}},
          {"label", DType::kI64, {}}};
}

Result<UpdateReport> Classifier::update(const replay::Batch& batch) {
  for (const Column& wanted : batch_columns()) {
    const int index = batch.find(wanted.name);
    if (index < 0 || batch.columns()[static_cast<std::size_t>(index)] != wanted)
      return fail(ErrorCode::kInvalidArgument, "The batch has no column '" + wanted.name +
                                                   "' of the classifier's type and shape.");
  }
  return update(PictureRows{
      .count = batch.items(),
      .global_count = batch.items(),
      .side = pictures_.side,
      .channels = pictures_.channels,
      .pixels = batch.bytes(batch.find("picture")).data(),
      .labels = reinterpret_cast<const std::int64_t*>(batch.bytes(batch.find("label")).data())});
}

Result<UpdateReport> Classifier::update(const PictureRows& rows) {
  const std::int64_t fewest =
      options_.batch_norm == "global" && replicas() > 1 ? replicas() * options_.accumulate : 1;
  if (rows.count < fewest)
    return fail(ErrorCode::kInvalidArgument,
                std::to_string(rows.count) + " pictures cannot be divided over " +
                    std::to_string(replicas()) + " replicas with accumulate " +
                    std::to_string(options_.accumulate));
  for (std::int64_t i = 0; i < rows.count; ++i)
    if (rows.labels[i] < 0 || rows.labels[i] >= pictures_.classes)
      return fail(ErrorCode::kInvalidArgument, "row " + std::to_string(i) + " has the label " +
                                                   std::to_string(rows.labels[i]) + " of " +
                                                   std::to_string(pictures_.classes) + " classes");
  const Result<void> updated = local_->run(version() + 1, [&](int i, ReplicaContext&) {
    const auto index = static_cast<std::size_t>(i);
    return replicas_[index]
        ->update(rows.part_of(replicas(), i))
        .map([&](const ClassifierTotals& totals) { totals_[index] = totals; });
  });
  if (!updated) return tl::unexpected(updated.error());
  UpdateReport report;
  report.version = version();
  if (version() % static_cast<std::uint64_t>(placement_.metrics_every) == 0) {
    const ClassifierTotals& totals = totals_.front();  // equal on every replica
    report.metrics = {{"loss", totals.loss},
                      {"accuracy", totals.accuracy},
                      {"gradient_norm", totals.gradient_norm},
                      {"learning_rate", totals.learning_rate}};
  }
  return report;
}

models::ParameterSetPtr Classifier::parameters() const {
  auto set = std::make_shared<models::ParameterSet>();
  set->learner_epoch = context_.epoch;
  set->version = version();
  ClassifierReplica& replica = *replicas_.front();
  const std::span<const float> values = replica.average().empty()
                                            ? floats(replica.arrays().parameters().values())
                                            : std::span<const float>(replica.average());
  for (const models::Segment& segment : model_.arrays().layout().segments) {
    const auto part = values.subspan(static_cast<std::size_t>(segment.offset),
                                     static_cast<std::size_t>(segment.elements));
    set->arrays[segment.name] = {segment.shape, {part.begin(), part.end()}};
  }
  const auto& buffers = model_.arrays().buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const at::Tensor buffer = replica.arrays().buffers()[i].contiguous();
    const auto part = floats(buffer);
    set->arrays[buffers[i].name] = {buffers[i].shape, {part.begin(), part.end()}};
  }
  return set;
}

Result<void> Classifier::evaluate(const PictureRows& rows, Classification& counted) {
  return local_->run(version(), [&](int i, ReplicaContext&) -> Result<void> {
    return i == 0 ? replicas_.front()->evaluate(rows, counted) : Result<void>();
  });
}

// Buffers of every replica are kept: where batch norms are each replica's own, they differ.
Result<std::vector<FileContent>> Classifier::snapshot() const {
  ClassifierReplica& replica = *replicas_.front();
  const models::FlatLayout& layout = model_.arrays().layout();
  NamedArrays parameters, optimizer;
  add_flat(parameters, layout, floats(replica.arrays().parameters().values()), "");
  add_flat(optimizer, layout, replica.velocity(), kVelocity);
  if (!replica.average().empty()) add_flat(optimizer, layout, replica.average(), kAverage);
  std::vector<at::Tensor> held;
  for (int r = 0; r < replicas(); ++r)
    for (std::size_t i = 0; i < model_.arrays().buffers().size(); ++i) {
      const auto& buffer = model_.arrays().buffers()[i];
      held.push_back(replicas_[static_cast<std::size_t>(r)]->arrays().buffers()[i].contiguous());
      const std::string name =
          r == 0 ? buffer.name : "replica_" + std::to_string(r) + "." + buffer.name;
      (r == 0 ? parameters : optimizer)[name] = {DType::kF32, buffer.shape,
                                                 raw_bytes(floats(held.back()))};
    }
  const Json content = {{"updates", version()},   {"classes", pictures_.classes},
                        {"side", pictures_.side}, {"channels", pictures_.channels},
                        {"replicas", replicas()}, {"options", options_json(options_)}};
  return encode_learner_files(kAlgorithm, content, parameters, optimizer);
}

Result<void> Classifier::load(const std::filesystem::path& directory) try {
  const auto files = read_learner_files(directory, kAlgorithm);
  if (!files) return tl::unexpected(files.error());
  const Json& content = files->content;
  if (auto same =
          same_options(content.at("options"), options_json(options_), kFixedOptions, "resnet");
      !same)
    return same;
  const models::FlatLayout& layout = model_.arrays().layout();
  const std::string parameter_file = (directory / kParametersFile).string();
  const std::string optimizer_file = (directory / kOptimizerFile).string();
  std::vector<float> values, velocity, average;
  auto taken = take_flat(files->parameters, parameter_file, layout, values, "");
  if (taken) taken = take_flat(files->optimizer, optimizer_file, layout, velocity, kVelocity);
  // A run that begins to average begins with the weights.
  if (taken && options_.average > 0) {
    const std::string first = kAverage + layout.segments.front().name;
    if (files->optimizer.tensors().contains(first))
      taken = take_flat(files->optimizer, optimizer_file, layout, average, kAverage);
    else
      average = values;
  }
  if (!taken) return taken;
  const int saved_replicas = content.at("replicas").get<int>();
  std::vector<std::vector<at::Tensor>> buffers(replicas_.size());
  for (int r = 0; r < replicas(); ++r)
    for (const auto& buffer : model_.arrays().buffers()) {
      const at::Tensor tensor = at::empty(buffer.shape);
      const std::span<float> to(tensor.mutable_data_ptr<float>(),
                                static_cast<std::size_t>(tensor.numel()));
      // More replicas than before begin with the first one's statistics.
      const bool own = r > 0 && r < saved_replicas;
      const auto copied =
          own ? files->optimizer.copy("replica_" + std::to_string(r) + "." + buffer.name,
                                      buffer.shape, to)
              : files->parameters.copy(buffer.name, buffer.shape, to);
      if (!copied) return copied;
      buffers[static_cast<std::size_t>(r)].push_back(tensor);
    }
  const auto updates = content.at("updates").get<std::uint64_t>();
  // Nothing below can fail.
  for (std::size_t r = 0; r < replicas_.size(); ++r) {
    ClassifierReplica& replica = *replicas_[r];
    std::copy(values.begin(), values.end(),
              replica.arrays().parameters().values().mutable_data_ptr<float>());
    replica.arrays().buffers() = buffers[r];
    replica.velocity() = velocity;
    replica.average() = average;
    replica.set_updates(updates);
  }
  return {};
} catch (const Json::exception& error) {
  return corrupt_manifest(directory, error);
}

}  // namespace troupe::learners
