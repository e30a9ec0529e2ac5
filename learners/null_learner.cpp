// Implements the counting learner.
#include "learners/null_learner.hpp"

#include <nlohmann/json.hpp>

#include "envs/spec/files.hpp"
#include "models/inference/dense_layers.hpp"

namespace troupe::learners {
namespace {

constexpr const char* kFile = "learner.json";

class NullLearner final : public Learner {
 public:
  NullLearner(const LearnerOptions& options, const LearnerContext& context)
      : batch_(options.d4pg.batch),
        replicas_(static_cast<int>(options.replicas)),
        observation_(context.spec.observation_size()),
        action_(context.spec.action.elements()),
        epoch_(context.epoch) {}

  std::vector<Column> batch_columns() const override {
    return {{"observation", DType::kF32, {observation_}},
            {"reward", DType::kF32, {}},
            {"discount", DType::kF32, {}},
            {"next_observation", DType::kF32, {observation_}}};
  }
  std::int64_t batch_size() const override { return batch_; }

  Result<UpdateReport> update(const replay::Batch& batch) override {
    if (batch.items() != batch_)
      return fail(ErrorCode::kInvalidArgument, "The learner takes batches of " +
                                                   std::to_string(batch_) + " items, not " +
                                                   std::to_string(batch.items()) + ".");
    UpdateReport report;
    report.version = ++version_;
    return report;
  }

  models::ParameterSetPtr parameters() const override {
    auto set = std::make_shared<models::ParameterSet>();
    set->learner_epoch = epoch_;
    set->version = version_;
    const models::DenseLayer layer{.inputs = static_cast<std::uint32_t>(observation_),
                                   .outputs = static_cast<std::uint32_t>(action_),
                                   .name = "policy.output"};
    set->policy = {layer};
    for (const models::Segment& segment : models::flat_layout(set->policy).segments)
      set->arrays[segment.name] = {segment.shape,
                                   std::vector<float>(static_cast<std::size_t>(segment.elements))};
    return set;
  }

  Result<void> merge_observations(std::span<const std::uint8_t>) override { return {}; }
  std::uint64_t version() const override { return version_; }
  std::uint64_t state_hash(int) const override { return version_; }
  int replicas() const override { return replicas_; }

  Result<std::vector<FileContent>> snapshot() const override {
    const std::string text =
        nlohmann::json{{"format", 1}, {"algorithm", "null"}, {"updates", version_}}.dump(2) + "\n";
    return std::vector{FileContent{kFile, {text.begin(), text.end()}}};
  }

  Result<void> load(const std::filesystem::path& directory) override {
    const std::filesystem::path path = directory / kFile;
    const Result<std::vector<std::uint8_t>> bytes = read_file(path);
    if (!bytes) return tl::unexpected(bytes.error());
    const auto json = nlohmann::json::parse(bytes->begin(), bytes->end(), nullptr, false);
    if (!json.is_object() || json.value("algorithm", "") != "null" || !json.contains("updates") ||
        !json["updates"].is_number_unsigned())
      return fail(ErrorCode::kCorrupt, path.string() + " is not a counting learner's manifest.");
    version_ = json["updates"].get<std::uint64_t>();
    return {};
  }

 private:
  std::int64_t batch_;
  int replicas_;
  std::int64_t observation_, action_;
  std::uint32_t epoch_;
  std::uint64_t version_ = 0;
};

}  // namespace

std::unique_ptr<Learner> make_null_learner(const LearnerOptions& options,
                                           const LearnerContext& context) {
  return std::make_unique<NullLearner>(options, context);
}

}  // namespace troupe::learners
