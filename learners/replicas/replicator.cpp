// Implements the driver: builds the collectives that the layout asks for, then runs rounds.
#include "learners/replicas/replicator.hpp"

#include "learners/collectives/exchanged.hpp"
#include "learners/collectives/hierarchical.hpp"
#include "learners/collectives/in_process.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

using Group = std::vector<std::unique_ptr<Collective>>;

// The collectives of this process's replicas, in the order of their ids.
Result<Group> make_collectives(const ReplicaLayout& layout, const ReplicationOptions& options,
                               const Processes& processes, const std::string& name) {
  if (layout.groups_span_processes()) {
    const int group = layout.group_of(layout.first_replica());
    const int size = layout.processes_per_group();
    Result<std::unique_ptr<Exchange>> exchange =
        connect(processes, options, name + std::to_string(group), layout.process % size, size);
    if (!exchange) return tl::unexpected(exchange.error());
    return make_hierarchical_group(
        layout.local, make_exchanged_collective(*std::move(exchange), "process"), options.timeout);
  }
  Group all;
  for (int first = 0; first < layout.local; first += layout.group_size)
    for (auto& collective :
         make_in_process_group(layout.group_size, options.timeout, layout.first_replica() + first))
      all.push_back(std::move(collective));
  return all;
}

GradientOptions gradient_options(const ReplicationOptions& options) {
  return {.bucket_bytes = options.bucket_bytes,
          .travel_as = options.gradients == "f16"    ? at::kHalf
                       : options.gradients == "bf16" ? at::kBFloat16
                                                     : at::kFloat};
}

std::vector<at::Device> devices_of(const ReplicationOptions& options) {
  std::vector<at::Device> devices;
  for (const std::string& name : options.logical_devices) {
    const at::Device device(name);
    // There is one CPU to LibTorch: cpu:0 and cpu:1 differ for the model's author alone.
    devices.push_back(device.is_cpu() ? at::Device(at::kCPU) : device);
  }
  return devices;
}

Result<std::unique_ptr<Inputs>> make_inputs(const ReplicaLayout& layout,
                                            const ReplicationOptions& options,
                                            const Processes& processes,
                                            const InputFunction& function) {
  std::unique_ptr<Collective> between;
  if (options.inputs == "one" && layout.processes > 1) {
    Result<std::unique_ptr<Exchange>> exchange =
        connect(processes, options, "inputs", layout.process, layout.processes);
    if (!exchange) return tl::unexpected(exchange.error());
    between = make_exchanged_collective(*std::move(exchange), "process");
  }
  return std::make_unique<Inputs>(layout, options.inputs, function, std::move(between));
}

}  // namespace

Result<std::unique_ptr<Replicator>> Replicator::make(const ReplicationOptions& options,
                                                     const Processes& processes,
                                                     const ReplicaFunction& model,
                                                     const InputFunction& inputs) try {
  const Result<ReplicaLayout> layout = replica_layout(options, processes.index, processes.count);
  if (!layout) return tl::unexpected(layout.error());
  std::unique_ptr<Replicator> replicator(new Replicator(*layout));
  Result<Group> collectives = make_collectives(*layout, options, processes, "group-");
  if (!collectives) return tl::unexpected(collectives.error());
  Group gradients(collectives->size());  // of their own, as they are reduced in the background
  if (options.bucket_bytes > 0 && layout->servers == 0) {
    Result<Group> made = make_collectives(*layout, options, processes, "gradients-");
    if (!made) return tl::unexpected(made.error());
    gradients = *std::move(made);
  }
  std::shared_ptr<Regime> regime = make_all_reduce_regime(gradient_options(options));
  if (layout->servers > 0) {
    if (processes.count > 1 && !processes.parameter_services)
      return fail(ErrorCode::kInvalidArgument,
                  "Parameter servers of several processes need a way to reach them.");
    replicator->servers_ = std::make_shared<ParameterServerRegime>(
        ParameterServerRegimeOptions{.servers = layout->servers,
                                     .staleness = static_cast<std::uint64_t>(options.staleness),
                                     .worker_incarnation = processes.incarnation,
                                     .timeout = options.timeout,
                                     .services = processes.parameter_services});
    regime = replicator->servers_;
  }
  std::vector<std::unique_ptr<ReplicaContext>> contexts;
  for (std::unique_ptr<Collective>& collective : *collectives) {
    const int id = layout->first_replica() + static_cast<int>(contexts.size());
    contexts.push_back(std::make_unique<ReplicaContext>(
        ReplicaPlace{.id = id,
                     .replicas = layout->replicas,
                     .process = layout->process,
                     .processes = layout->processes,
                     .group = layout->group_of(id),
                     .groups = layout->groups},
        std::move(collective), devices_of(options), regime, std::move(gradients[contexts.size()])));
  }
  replicator->replicas_ =
      std::make_unique<LocalReplicas>(std::move(contexts), static_cast<int>(options.threads));
  if (inputs) {
    Result<std::unique_ptr<Inputs>> made = make_inputs(*layout, options, processes, inputs);
    if (!made) return replicator->stop(made.error());
    replicator->inputs_ = *std::move(made);
  }
  replicator->functions_.resize(static_cast<std::size_t>(layout->local));
  const Result<void> built =
      replicator->replicas_->run(0, [&](int index, ReplicaContext& context) -> Result<void> {
        replicator->functions_[static_cast<std::size_t>(index)] = model(context);
        return {};
      });
  if (!built) return replicator->stop(built.error());
  return replicator;
} catch (const std::exception& error) {
  return fail(ErrorCode::kInvalidArgument,
              std::string("The replicas cannot be made: ") + error.what());
}

Replicator::~Replicator() {
  // Step functions end on the threads that made what they hold.
  if (replicas_ && !functions_.empty())
    static_cast<void>(run(
        [&](int index, ReplicaContext&) { functions_[static_cast<std::size_t>(index)].clear(); }));
}

tl::unexpected<Error> Replicator::stop(const Error& error) {
  replicas_->leave(error.message);
  if (inputs_) inputs_->leave(error.message);
  return tl::unexpected(error);
}

Result<std::vector<Tensors>> Replicator::step(const std::string& name) {
  if (inputs_)
    if (Result<void> fetched = inputs_->fetch(); !fetched) return stop(fetched.error());
  ++steps_;
  std::vector<Tensors> reports(functions_.size());
  const Result<void> done =
      replicas_->run(steps_, [&](int index, ReplicaContext& context) -> Result<void> {
        const auto i = static_cast<std::size_t>(index);
        const auto function = functions_[i].find(name);
        if (function == functions_[i].end())
          return fail(ErrorCode::kInvalidArgument,
                      "Replicas have no step function '" + name + "'.");
        Result<Tensors> inputs = inputs_ ? inputs_->take(index) : Tensors{};
        if (!inputs) return tl::unexpected(inputs.error());
        for (at::Tensor& input : *inputs) input = input.to(context.logical_device(0));
        reports[i] = function->second(*inputs);
        return {};
      });
  if (!done) return stop(done.error());
  return reports;
}

Result<void> Replicator::step(const LocalReplicas::Work& work) {
  const Result<void> done = replicas_->run(++steps_, work);
  if (!done && done.error().code != ErrorCode::kNotFinite) return stop(done.error());
  return done;
}

Result<void> Replicator::run(const std::function<void(int, ReplicaContext&)>& work) {
  return replicas_->run(steps_, [&](int index, ReplicaContext& context) -> Result<void> {
    work(index, context);
    return {};
  });
}

}  // namespace troupe::learners
