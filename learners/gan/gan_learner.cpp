#include "learners/gan/gan_learner.hpp"

#include <array>
#include <utility>

#include "learners/checkpoint_files.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

using Json = nlohmann::json;

constexpr const char* kAlgorithm = "sngan";
// Options that give the stored arrays their shape and meaning.
constexpr std::array kFixedOptions = {"conditional", "noise", "generator_width",
                                      "discriminator_width"};

std::span<const float> floats(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// The two networks under the names of their arrays in a checkpoint.
struct Named {
  std::string prefix;
  const models::ArrayList& arrays;
  GanReplica::Side& side;
};

std::vector<Named> sides_of(GanReplica& replica, const models::Generator& generator,
                            const models::Discriminator& discriminator) {
  return {{"generator.", generator.arrays(), replica.generator()},
          {"discriminator.", discriminator.arrays(), replica.discriminator()}};
}

std::string of_replica(std::size_t replica) {
  return replica == 0 ? "" : "replica_" + std::to_string(replica) + ".";
}

}  // namespace

Result<std::unique_ptr<GanLearner>> GanLearner::create(const GanOptions& options,
                                                       const LearnerOptions& placement,
                                                       const PictureSpec& pictures,
                                                       const LearnerContext& context) {
  if (auto good = check(options, placement.replicas, pictures.side); !good)
    return tl::unexpected(good.error());
  if (auto good = check(shape_of(options, pictures)); !good) return tl::unexpected(good.error());
  std::unique_ptr<GanLearner> learner(new GanLearner(options, placement, pictures, context));
  if (auto made = learner->make_replicas(); !made) return tl::unexpected(made.error());
  return learner;
}

GanLearner::GanLearner(const GanOptions& options, const LearnerOptions& placement,
                       const PictureSpec& pictures, const LearnerContext& context)
    : options_(options),
      placement_(placement),
      pictures_(pictures),
      context_(context),
      generator_(shape_of(options, pictures)),
      discriminator_(shape_of(options, pictures)),
      replicas_(static_cast<std::size_t>(placement.replicas)),
      totals_(static_cast<std::size_t>(placement.replicas)) {}

Result<void> GanLearner::make_replicas() {
  local_ = make_local_replicas(replicas(), static_cast<int>(placement_.threads));
  return local_->run(0, [&](int i, ReplicaContext& context) -> Result<void> {
    replicas_[static_cast<std::size_t>(i)] = std::make_unique<GanReplica>(
        generator_, discriminator_, options_, pictures_, context, context_.seed);
    return {};
  });
}

std::vector<Column> GanLearner::batch_columns() const {
  return {{"picture", DType::kU8, {pictures_.side, pictures_.side, pictures_.channels}},
          {"label", DType::kI64, {}}};
}

Result<UpdateReport> GanLearner::update(const replay::Batch& batch) {
  for (const Column& wanted : batch_columns()) {
    const int index = batch.find(wanted.name);
    if (index < 0 || batch.columns()[static_cast<std::size_t>(index)] != wanted)
      return fail(ErrorCode::kInvalidArgument,
                  "The batch has no column '" + wanted.name + "' of the pictures' type and shape.");
  }
  const PictureRows rows{
      .count = batch.items(),
      .global_count = batch.items(),
      .side = pictures_.side,
      .channels = pictures_.channels,
      .pixels = batch.bytes(batch.find("picture")).data(),
      .labels = reinterpret_cast<const std::int64_t*>(batch.bytes(batch.find("label")).data())};
  if (rows.count < options_.discriminator_steps * replicas())
    return fail(ErrorCode::kInvalidArgument,
                std::to_string(rows.count) + " pictures cannot be divided over " +
                    std::to_string(replicas()) + " replicas and " +
                    std::to_string(options_.discriminator_steps) + " steps");
  for (std::int64_t i = 0; i < rows.count; ++i)
    if (rows.labels[i] < 0 || rows.labels[i] >= pictures_.classes)
      return fail(ErrorCode::kInvalidArgument, "row " + std::to_string(i) + " has the label " +
                                                   std::to_string(rows.labels[i]) + " of " +
                                                   std::to_string(pictures_.classes) + " classes");
  const Result<void> updated = local_->run(version() + 1, [&](int i, ReplicaContext&) {
    const auto index = static_cast<std::size_t>(i);
    return replicas_[index]->update(rows.part_of(replicas(), i)).map([&](const GanTotals& totals) {
      totals_[index] = totals;
    });
  });
  if (!updated) return tl::unexpected(updated.error());
  UpdateReport report;
  report.version = version();
  if (version() % static_cast<std::uint64_t>(placement_.metrics_every) == 0) {
    const GanTotals& totals = totals_.front();  // equal on every replica
    report.metrics = {{"loss/discriminator", totals.discriminator_loss},
                      {"loss/generator", totals.generator_loss},
                      {"score/real", totals.real_score},
                      {"score/fake", totals.fake_score},
                      {"learning_rate", totals.learning_rate}};
  }
  return report;
}

models::ParameterSetPtr GanLearner::parameters() const {
  auto set = std::make_shared<models::ParameterSet>();
  set->learner_epoch = context_.epoch;
  set->version = version();
  const models::ImageArrays& arrays = replicas_.front()->generator().arrays;
  const auto put = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                       std::span<const float> values) {
    set->arrays[name] = {shape, {values.begin(), values.end()}};
  };
  const auto values = floats(arrays.parameters().values());
  for (const models::Segment& segment : generator_.arrays().layout().segments)
    put(segment.name, segment.shape,
        values.subspan(static_cast<std::size_t>(segment.offset),
                       static_cast<std::size_t>(segment.elements)));
  for (std::size_t i = 0; i < arrays.buffers().size(); ++i) {
    const auto& buffer = generator_.arrays().buffers()[i];
    const at::Tensor held = arrays.buffers()[i].contiguous();
    put(buffer.name, buffer.shape, floats(held));
  }
  return set;
}

// Buffers of every replica are kept: batch statistics are each replica's own.
Result<std::vector<FileContent>> GanLearner::snapshot() const {
  NamedArrays parameters, optimizer;
  std::vector<at::Tensor> held;
  std::vector<std::uint64_t> steps;
  for (std::size_t r = 0; r < replicas_.size(); ++r)
    for (const Named& named : sides_of(*replicas_[r], generator_, discriminator_)) {
      const auto& buffers = named.arrays.buffers();
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        held.push_back(named.side.arrays.buffers()[i].contiguous());
        (r == 0 ? parameters : optimizer)[of_replica(r) + named.prefix + buffers[i].name] = {
            DType::kF32, buffers[i].shape, raw_bytes(floats(held.back()))};
      }
      if (r > 0) continue;
      const models::FlatLayout& layout = named.arrays.layout();
      add_flat(parameters, layout, floats(named.side.arrays.parameters().values()), named.prefix);
      add_flat(optimizer, layout, named.side.first, "first." + named.prefix);
      add_flat(optimizer, layout, named.side.second, "second." + named.prefix);
      steps.push_back(named.side.steps);
    }
  const Json content = {{"updates", steps[0]},
                        {"discriminator_steps", steps[1]},
                        {"classes", pictures_.classes},
                        {"side", pictures_.side},
                        {"channels", pictures_.channels},
                        {"replicas", replicas()},
                        {"options", options_json(options_)}};
  return encode_learner_files(kAlgorithm, content, parameters, optimizer);
}

Result<void> GanLearner::load(const std::filesystem::path& directory) try {
  const auto files = read_learner_files(directory, kAlgorithm);
  if (!files) return tl::unexpected(files.error());
  const Json& content = files->content;
  if (auto same =
          same_options(content.at("options"), options_json(options_), kFixedOptions, "sngan");
      !same)
    return same;
  const std::string parameter_file = (directory / kParametersFile).string();
  const std::string optimizer_file = (directory / kOptimizerFile).string();
  const auto saved_replicas = content.at("replicas").get<std::size_t>();
  const std::array<std::uint64_t, 2> steps = {
      content.at("updates").get<std::uint64_t>(),
      content.at("discriminator_steps").get<std::uint64_t>()};
  struct Loaded {
    std::vector<float> values, first, second;
    std::vector<std::vector<at::Tensor>> buffers;  // [replica]
  };
  std::array<Loaded, 2> loaded;
  const auto sides = sides_of(*replicas_.front(), generator_, discriminator_);
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const models::FlatLayout& layout = sides[s].arrays.layout();
    const std::string& prefix = sides[s].prefix;
    auto taken = take_flat(files->parameters, parameter_file, layout, loaded[s].values, prefix);
    if (taken)
      taken =
          take_flat(files->optimizer, optimizer_file, layout, loaded[s].first, "first." + prefix);
    if (taken)
      taken =
          take_flat(files->optimizer, optimizer_file, layout, loaded[s].second, "second." + prefix);
    if (!taken) return taken;
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      auto& buffers = loaded[s].buffers.emplace_back();
      for (const auto& buffer : sides[s].arrays.buffers()) {
        const at::Tensor tensor = at::empty(buffer.shape);
        const std::span<float> to(tensor.mutable_data_ptr<float>(),
                                  static_cast<std::size_t>(tensor.numel()));
        // More replicas than before begin with the first one's.
        const bool own = r > 0 && r < saved_replicas;
        const auto copied =
            (own ? files->optimizer : files->parameters)
                .copy((own ? of_replica(r) : "") + prefix + buffer.name, buffer.shape, to);
        if (!copied) return copied;
        buffers.push_back(tensor);
      }
    }
  }
  // Nothing below can fail.
  for (std::size_t r = 0; r < replicas_.size(); ++r) {
    const auto own = sides_of(*replicas_[r], generator_, discriminator_);
    for (std::size_t s = 0; s < own.size(); ++s) {
      GanReplica::Side& side = own[s].side;
      std::copy(loaded[s].values.begin(), loaded[s].values.end(),
                side.arrays.parameters().values().mutable_data_ptr<float>());
      side.arrays.buffers() = loaded[s].buffers[r];
      side.first = loaded[s].first;
      side.second = loaded[s].second;
      side.steps = steps[s];
    }
  }
  return {};
} catch (const Json::exception& error) {
  return corrupt_manifest(directory, error);
}

}  // namespace troupe::learners
