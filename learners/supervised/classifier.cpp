#include "learners/supervised/classifier.hpp"

#include <array>
#include <utility>

#include "learners/checkpoint_files.hpp"
#include "learners/data/picture_columns.hpp"
#include "learners/supervised/set_arrays.hpp"
#include "models/kept_memory.hpp"
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

at::Tensor view_of(std::vector<float>& values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat);
}

}  // namespace

Result<std::unique_ptr<Classifier>> Classifier::create(const ClassifierOptions& options,
                                                       const LearnerOptions& placement,
                                                       const PictureSpec& pictures,
                                                       const LearnerContext& context) {
  models::keep_tensor_memory();
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
      totals_(static_cast<std::size_t>(placement.replicas)),
      team_(placement_, pictures_) {}

Result<void> Classifier::make_replicas() {
  if (auto formed = team_.form({}); !formed) return formed;
  return team_.step([&](int i, ReplicaContext&) -> Result<void> {
    replicas_[static_cast<std::size_t>(i)] =
        std::make_unique<ClassifierReplica>(model_, options_, context_.seed);
    return {};
  });
}

Result<void> Classifier::join(const LearnerGroup& group) {
  if (auto formed = team_.form(group); !formed) return formed;
  PictureTeam::States states{.updates = version(), .equal = {}, .own = {}, .counters = {}};
  for (const auto& replica : replicas_) {
    states.equal.push_back({replica->arrays().parameters().values(), view_of(replica->velocity())});
    if (options_.average > 0) states.equal.back().push_back(view_of(replica->average()));
    states.own.push_back(&replica->arrays().buffers());
  }
  if (auto agreed = team_.agree(states); !agreed) {
    team_.disband();
    return agreed;
  }
  for (const auto& replica : replicas_) replica->set_updates(states.updates);
  context_.epoch = group.generation;
  return {};
}

std::vector<Column> Classifier::batch_columns() const {
  return data::picture_columns(pictures_.side, pictures_.channels);
}

Result<UpdateReport> Classifier::update(const replay::Batch& batch) {
  return picture_rows(batch, pictures_).and_then([&](const PictureRows& rows) {
    return update(rows);
  });
}

Result<UpdateReport> Classifier::update(const PictureRows& rows) {
  if (rows.count < 1) return fail(ErrorCode::kInvalidArgument, "The batch has no pictures.");
  if (auto good = check_labels(rows, pictures_.classes); !good) return tl::unexpected(good.error());
  const Result<void> updated = team_.step([&](int i, ReplicaContext& context) {
    const auto index = static_cast<std::size_t>(i);
    return replicas_[index]
        ->update(context, team_.part_of(rows, i))
        .map([&](const ClassifierTotals& totals) { totals_[index] = totals; });
  });
  if (!updated) return tl::unexpected(updated.error());
  UpdateReport report;
  report.version = version();
  if (report.compared = team_.compares(version()); report.compared)
    if (auto equal = team_.compare(version(), [&](int i) { return state_hash(i); }); !equal)
      return tl::unexpected(equal.error());
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
  put_arrays(*set, model_.arrays(), values, replica.arrays());
  return set;
}

Result<void> Classifier::evaluate(const PictureRows& rows, Classification& counted) {
  return team_.step([&](int i, ReplicaContext&) -> Result<void> {
    return i == 0 ? replicas_.front()->evaluate(rows, counted) : Result<void>();
  });
}

Result<std::vector<FileContent>> Classifier::snapshot() const {
  ClassifierReplica& replica = *replicas_.front();
  const models::FlatLayout& layout = model_.arrays().layout();
  NamedArrays parameters, optimizer;
  add_flat(parameters, layout, floats(replica.arrays().parameters().values()), "");
  add_flat(optimizer, layout, replica.velocity(), kVelocity);
  if (!replica.average().empty()) add_flat(optimizer, layout, replica.average(), kAverage);
  std::vector<at::Tensor> held;
  for (std::size_t r = 0; r < replicas_.size(); ++r)
    add_buffers(r == 0 ? parameters : optimizer, of_replica(r), model_.arrays(),
                replicas_[r]->arrays(), held);
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
  const auto saved_replicas = content.at("replicas").get<std::size_t>();
  std::vector<std::vector<at::Tensor>> buffers;
  for (std::size_t r = 0; r < replicas_.size(); ++r) {
    auto own = take_buffers(*files, r, saved_replicas, "", model_.arrays());
    if (!own) return tl::unexpected(own.error());
    buffers.push_back(*std::move(own));
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
