// Implements D4PG's parameter server.
#include "learners/d4pg/parameter_shard.hpp"

#include "learners/parameter_servers/wire.hpp"
#include "learners/replicas/fused_adam.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

OptimizerFactory adam_of(const D4pgOptions& options, const std::vector<D4pgSlice>& slices) {
  std::vector<double> rates;
  for (const D4pgSlice& slice : slices) rates.push_back(learning_rate_of(options, slice.of_policy));
  return fused_adam({}, rates);
}

}  // namespace

class D4pgParameterShard::Checked final : public ParameterService {
 public:
  explicit Checked(D4pgParameterShard& shard) : shard_(shard) {}
  Result<ServerState> state(WorkerId worker) override { return shard_.server_.state(worker); }
  Result<void> initialise(const Tensors& values) override {
    return shard_.check(values).and_then([&] { return shard_.server_.initialise(values); });
  }
  Result<Tensors> values() override { return shard_.server_.values(); }
  Result<PushReply> push(const Push& push) override { return shard_.server_.push(push); }
  Result<void> keep(std::span<const std::uint8_t> bytes) override {
    return shard_.server_.keep(bytes);
  }
  Result<std::vector<std::uint8_t>> kept() override { return shard_.server_.kept(); }

 private:
  D4pgParameterShard& shard_;
};

D4pgParameterShard::D4pgParameterShard(const D4pgModel& model, const ParameterShardPlace& place)
    : model_(model),
      slices_(place_slices(model_, place.servers)),
      own_(slices_.of_server[static_cast<std::size_t>(place.server)]),
      server_(adam_of(model_.options, own_), {.staleness = place.staleness,
                                              .incarnation = place.incarnation,
                                              .workers = place.workers}) {}

Result<void> D4pgParameterShard::check(const Tensors& values) const {
  bool fits = values.size() == own_.size();
  for (std::size_t i = 0; fits && i < own_.size(); ++i) {
    const models::Segment& segment = segment_of(model_, own_[i]);
    fits = values[i].scalar_type() == at::kFloat && values[i].sizes() == segment.shape;
  }
  if (fits) return {};
  return fail(ErrorCode::kInvalidArgument,
              "The values are not those of the " + std::to_string(own_.size()) +
                  " arrays that this parameter server holds: networks or the number of servers "
                  "are others.");
}

std::vector<std::uint8_t> D4pgParameterShard::answer(std::span<const std::uint8_t> request) {
  Checked checked(*this);
  return learners::answer(checked, request);
}

Result<void> D4pgParameterShard::restore(std::span<const std::uint8_t> snapshot) {
  Result<void> restored = server_.restore(snapshot);
  if (!restored) return restored;
  const Result<Tensors> values = server_.values();
  return values ? check(*values) : Result<void>();
}

ParameterShardFigures D4pgParameterShard::figures() const {
  const ParameterServerTelemetry telemetry = server_.telemetry();
  return {.ready = telemetry.bytes > 0,
          .version = telemetry.version,
          .applied = telemetry.applied,
          .refused = telemetry.refused,
          .repeated = telemetry.repeated,
          .staleness_sum = telemetry.staleness_sum,
          .staleness_max = telemetry.staleness_max,
          .bytes = telemetry.bytes,
          .imbalance = slices_.placement.imbalance()};
}

}  // namespace troupe::learners
