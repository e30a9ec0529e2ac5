// Implements the server.
#include "learners/parameter_servers/server.hpp"

#include <c10/core/GradMode.h>
#include <torch/serialize/archive.h>

#include <cmath>
#include <sstream>

#include "learners/adam.hpp"
#include "learners/parameter_servers/wire.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

constexpr std::uint64_t kMagic = 0x3230'7265'7672'6553ULL;

// One number that is not finite would spread to every worker.
bool is_finite(const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kFloat || !tensor.is_contiguous())
    return at::isfinite(tensor).all().item<bool>();
  return std::isfinite(
      squared_norm({tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())}));
}

}  // namespace

ParameterServer::ParameterServer(OptimizerFactory factory, const ParameterServerOptions& options)
    : factory_(std::move(factory)), options_(options) {}

ParameterServer::Worker& ParameterServer::worker_of(WorkerId id) {
  Worker& worker = workers_[id.worker];
  if (id.incarnation > worker.incarnation) {
    retired_ += worker.applied;
    worker = {.incarnation = id.incarnation};
  }
  return worker;
}

Result<void> ParameterServer::known(WorkerId id) const {
  if (options_.workers == 0 || (id.worker >= 0 && id.worker < options_.workers)) return {};
  return fail(ErrorCode::kInvalidArgument, "There is no worker " + std::to_string(id.worker) +
                                               "; there are " + std::to_string(options_.workers) +
                                               ".");
}

Result<ServerState> ParameterServer::state(WorkerId id) {
  const std::lock_guard lock(mutex_);
  if (Result<void> good = known(id); !good) return tl::unexpected(good.error());
  const Worker& worker = worker_of(id);
  return ServerState{.ready = !parameters_.empty(),
                     .incarnation = options_.incarnation,
                     .version = version_,
                     .applied = worker.applied,
                     .last_sequence = worker.last_sequence};
}

Result<void> ParameterServer::take(const std::vector<at::Tensor>& values,
                                   const std::string* state) {
  std::vector<at::Tensor> parameters;
  std::int64_t bytes = 0;
  for (const at::Tensor& value : values) {
    if (!value.is_floating_point())
      return fail(ErrorCode::kInvalidArgument, "A parameter is no floating-point tensor.");
    parameters.push_back(value.detach().clone().requires_grad_(true));
    parameters.back().mutable_grad() = at::zeros_like(parameters.back());
    bytes += static_cast<std::int64_t>(value.nbytes());
  }
  auto optimizer = factory_(parameters);
  if (state != nullptr) {
    std::istringstream stream(*state);
    torch::serialize::InputArchive archive;
    archive.load_from(stream);
    optimizer->load(archive);
  }
  // All of it, or nothing.
  parameters_ = std::move(parameters);
  optimizer_ = std::move(optimizer);
  telemetry_.bytes = bytes;
  return {};
}

Result<void> ParameterServer::initialise(const std::vector<at::Tensor>& values) try {
  if (values.empty()) return fail(ErrorCode::kInvalidArgument, "A shard needs parameters.");
  const std::lock_guard lock(mutex_);
  return parameters_.empty() ? take(values, nullptr) : Result<void>();
} catch (const std::exception& error) {
  return fail(ErrorCode::kInvalidArgument,
              std::string("No optimizer can be made of the parameters: ") + error.what());
}

std::vector<at::Tensor> ParameterServer::copies() const {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> values;
  for (const at::Tensor& parameter : parameters_) values.push_back(parameter.detach().clone());
  return values;
}

Result<std::vector<at::Tensor>> ParameterServer::values() {
  const std::lock_guard lock(mutex_);
  if (parameters_.empty())
    return fail(ErrorCode::kUnavailable, "The parameter server has no values yet.");
  return copies();
}

Result<void> ParameterServer::fits(const Push& push) const {
  if (parameters_.empty())
    return fail(ErrorCode::kUnavailable, "The parameter server has no values yet.");
  if (push.gradients.size() != parameters_.size())
    return fail(ErrorCode::kInvalidArgument,
                "Worker " + std::to_string(push.worker.worker) + " sent " +
                    std::to_string(push.gradients.size()) + " gradients for a shard of " +
                    std::to_string(parameters_.size()) + " parameters.");
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (push.gradients[i].sizes() != parameters_[i].sizes() ||
        push.gradients[i].scalar_type() != parameters_[i].scalar_type())
      return fail(ErrorCode::kInvalidArgument, "Gradient " + std::to_string(i) + " of worker " +
                                                   std::to_string(push.worker.worker) +
                                                   " has another type or shape.");
  for (const at::Tensor& gradient : push.gradients)
    if (!is_finite(gradient))
      return fail(ErrorCode::kInvalidArgument,
                  "A gradient of worker " + std::to_string(push.worker.worker) + " is not finite.");
  return known(push.worker);
}

Result<void> ParameterServer::keep(std::span<const std::uint8_t> bytes) {
  if (bytes.size() > kMostKeptBytes)
    return fail(ErrorCode::kInvalidArgument, "A parameter server keeps " +
                                                 std::to_string(kMostKeptBytes) + " bytes, not " +
                                                 std::to_string(bytes.size()) + ".");
  const std::lock_guard lock(mutex_);
  kept_.assign(bytes.begin(), bytes.end());
  return {};
}

Result<std::vector<std::uint8_t>> ParameterServer::kept() {
  const std::lock_guard lock(mutex_);
  return kept_;
}

Result<PushReply> ParameterServer::push(const Push& push) {
  const std::lock_guard lock(mutex_);
  if (push.server_incarnation != options_.incarnation)
    return PushReply{.outcome = PushOutcome::kReborn, .version = version_};
  if (Result<void> good = fits(push); !good) return tl::unexpected(good.error());
  Worker& worker = worker_of(push.worker);
  if (push.worker.incarnation < worker.incarnation)
    return fail(ErrorCode::kInvalidArgument, "Worker " + std::to_string(push.worker.worker) +
                                                 " was started again; this is its predecessor.");
  if (push.sequence <= worker.last_sequence) {
    ++telemetry_.repeated;
    return PushReply{.outcome = PushOutcome::kApplied, .version = version_, .values = copies()};
  }
  const std::uint64_t staleness = version_ - std::min(version_, push.version);
  if (staleness > options_.staleness) {
    ++telemetry_.refused;
    return PushReply{.outcome = PushOutcome::kStale, .version = version_, .values = copies()};
  }
  {
    const c10::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      parameters_[i].mutable_grad().copy_(push.gradients[i]);
  }
  optimizer_->step();
  ++version_;
  ++telemetry_.applied;
  ++worker.applied;
  worker.last_sequence = push.sequence;
  telemetry_.staleness_sum += staleness;
  telemetry_.staleness_max = std::max(telemetry_.staleness_max, staleness);
  return PushReply{.outcome = PushOutcome::kApplied, .version = version_, .values = copies()};
}

Result<std::vector<std::uint8_t>> ParameterServer::snapshot() const try {
  const std::lock_guard lock(mutex_);
  models::ByteWriter writer;
  writer.put(kMagic);
  writer.put(version_);
  writer.put(retired_);
  writer.put(static_cast<std::uint32_t>(workers_.size()));
  for (const auto& [id, worker] : workers_) {
    writer.put(static_cast<std::int32_t>(id));
    writer.put(worker.incarnation);
    writer.put(worker.applied);
    writer.put(worker.last_sequence);
  }
  put_tensors(writer, parameters_);
  std::string state;
  if (optimizer_) {
    std::ostringstream stream;
    torch::serialize::OutputArchive archive;
    optimizer_->save(archive);
    archive.save_to(stream);
    state = stream.str();
  }
  writer.put(std::string_view(state));
  writer.put(static_cast<std::uint32_t>(kept_.size()));
  writer.put_values(std::span<const std::uint8_t>(kept_));
  return writer.bytes();
} catch (const std::exception& error) {
  return fail(ErrorCode::kInternal,
              std::string("A parameter server's optimizer cannot be saved: ") + error.what());
}

Result<void> ParameterServer::restore(std::span<const std::uint8_t> snapshot) try {
  const std::lock_guard lock(mutex_);
  models::ByteReader reader(snapshot);
  const auto corrupt = fail(ErrorCode::kCorrupt, "A parameter server's snapshot cannot be read.");
  std::uint64_t magic = 0, version = 0, retired = 0;
  std::uint32_t count = 0;
  if (!reader.take(magic) || magic != kMagic || !reader.take(version) || !reader.take(retired) ||
      !reader.take(count))
    return corrupt;
  std::uint64_t applied = retired;
  std::map<int, Worker> workers;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::int32_t id = 0;
    Worker worker;
    if (!reader.take(id) || !reader.take(worker.incarnation) || !reader.take(worker.applied) ||
        !reader.take(worker.last_sequence))
      return corrupt;
    workers[id] = worker;
    applied += worker.applied;
  }
  const auto values = take_tensors(reader);
  std::string state;
  std::uint32_t kept_size = 0;
  std::vector<std::uint8_t> kept;
  if (!values || !reader.take(state) || !reader.take(kept_size) || kept_size > kMostKeptBytes ||
      !reader.take_values(kept_size, kept) || !reader.complete() || applied != version)
    return corrupt;
  if (!values->empty())
    if (Result<void> taken = take(*values, &state); !taken) return corrupt;
  workers_ = std::move(workers);
  version_ = version;
  retired_ = retired;
  kept_ = std::move(kept);
  return {};
} catch (const std::exception& error) {
  return fail(ErrorCode::kCorrupt,
              std::string("A parameter server's snapshot does not fit: ") + error.what());
}

ParameterServerTelemetry ParameterServer::telemetry() const {
  const std::lock_guard lock(mutex_);
  ParameterServerTelemetry telemetry = telemetry_;
  telemetry.version = version_;
  return telemetry;
}

}  // namespace troupe::learners
