// Implements the worker's optimizer: average within the group, send to the servers, take what they
// hold, pass it on within the group. The first replica of a group speaks for it.
#include "learners/parameter_servers/regime.hpp"

#include <c10/core/GradMode.h>

#include "learners/replicas/flat_tensors.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

// The parameters of one server, by index, and the way there.
struct Shard {
  int server = 0;
  std::vector<std::size_t> parameters;
  ParameterWorker worker;
};

// A server of this process: whoever would bring its first values may be gone.
class LocalService final : public ParameterService {
 public:
  LocalService(std::shared_ptr<ParameterServer> server, std::function<std::string()> left)
      : server_(std::move(server)), left_(std::move(left)) {}
  Result<ServerState> state(WorkerId worker) override {
    Result<ServerState> state = server_->state(worker);
    if (state && !state->ready)
      if (const std::string left = left_(); !left.empty())
        return fail(ErrorCode::kInternal, "it will get no values: " + left);
    return state;
  }
  Result<void> initialise(const Tensors& values) override { return server_->initialise(values); }
  Result<Tensors> values() override { return server_->values(); }
  Result<PushReply> push(const Push& push) override { return server_->push(push); }
  Result<void> keep(std::span<const std::uint8_t> bytes) override { return server_->keep(bytes); }
  Result<std::vector<std::uint8_t>> kept() override { return server_->kept(); }

 private:
  std::shared_ptr<ParameterServer> server_;
  std::function<std::string()> left_;
};

class WorkerOptimizer final : public ReplicaOptimizer {
 public:
  WorkerOptimizer(ParameterServerRegime& regime, ReplicaContext& context, const Tensors& parameters,
                  int index)
      : regime_(regime),
        context_(context),
        parameters_(parameters),
        flat_(flatten(parameters)),
        index_(index) {
    for (const FlatTensors& flat : flat_) {
      values_.push_back(flat.values());
      gradients_.push_back(flat.gradients());
    }
  }

  void add(Shard shard) { shards_.push_back(std::move(shard)); }

  // Group 0 brings the first values, the others wait for them.
  void begin(std::source_location where) {
    for (Shard& shard : shards_) {
      const Tensors own = of(shard, false);
      store(shard, shard.worker.begin(context_.place().group == 0 ? &own : nullptr));
    }
    share(where);
  }

  void zero_grad() override {
    for (FlatTensors& flat : flat_) flat.zero_gradients();
  }

  void step(std::source_location where) override {
    for (FlatTensors& flat : flat_) flat.collect_gradients();
    if (context_.replicas_in_sync() > 1)
      must(context_.collective().all_reduce(gradients_, ReduceOp::kMean, context_.call_at(where)));
    for (Shard& shard : shards_) {
      store(shard, shard.worker.update(of(shard, true)));
      regime_.note(index_, shard.server, context_.place().group, shard.worker.ledger());
    }
    share(where);
  }

 private:
  Tensors of(const Shard& shard, bool gradients) const {
    Tensors tensors;
    for (const std::size_t i : shard.parameters)
      tensors.push_back(gradients ? parameters_[i].grad() : parameters_[i].detach());
    return tensors;
  }
  void store(const Shard& shard, const Result<Tensors>& values) {
    if (!values)
      throw CollectiveError(
          {values.error().code,
           "Parameter server " + std::to_string(shard.server) + ": " + values.error().message});
    const c10::NoGradGuard no_grad;
    for (std::size_t i = 0; i < shard.parameters.size(); ++i)
      parameters_[shard.parameters[i]].copy_((*values)[i]);
  }
  void share(std::source_location where) {
    if (context_.replicas_in_sync() > 1)
      must(context_.collective().broadcast(values_, 0, context_.call_at(where)));
  }

  ParameterServerRegime& regime_;
  ReplicaContext& context_;
  Tensors parameters_;
  std::vector<FlatTensors> flat_;
  int index_;
  std::vector<Shard> shards_;  // none: not the one that speaks for its group
  Tensors values_, gradients_;
};

}  // namespace

std::unique_ptr<ReplicaOptimizer> ParameterServerRegime::wrap(ReplicaContext& context,
                                                              const Tensors& parameters,
                                                              const OptimizerFactory& factory,
                                                              int index,
                                                              std::source_location where) {
  std::vector<std::int64_t> bytes;
  for (const at::Tensor& parameter : parameters)
    bytes.push_back(static_cast<std::int64_t>(parameter.nbytes()));
  const Placement placement = place_by_bytes(bytes, options_.servers);
  {
    const std::lock_guard lock(mutex_);
    placements_[index] = placement;
  }
  auto optimizer = std::make_unique<WorkerOptimizer>(*this, context, parameters, index);
  if (context.id_in_sync() == 0) {
    for (int server = 0; server < options_.servers; ++server) {
      std::vector<std::size_t> held;
      for (std::size_t i = 0; i < parameters.size(); ++i)
        if (placement.server_of[i] == server) held.push_back(i);
      if (held.empty()) continue;
      const WorkerId worker{context.place().group, options_.worker_incarnation};
      optimizer->add({server, std::move(held),
                      ParameterWorker(service(index, server, factory), worker, options_.timeout)});
    }
  }
  optimizer->begin(where);
  return optimizer;
}

std::shared_ptr<ParameterService> ParameterServerRegime::service(int optimizer, int server,
                                                                 const OptimizerFactory& factory) {
  if (options_.services) return options_.services(optimizer, server);
  const std::lock_guard lock(mutex_);
  std::shared_ptr<ParameterServer>& own = servers_[{optimizer, server}];
  if (!own)
    own = std::make_shared<ParameterServer>(
        factory, ParameterServerOptions{.staleness = options_.staleness});
  return std::make_shared<LocalService>(own, [this] {
    const std::lock_guard again(mutex_);
    return left_;
  });
}

void ParameterServerRegime::leave(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (left_.empty()) left_ = reason;
}

void ParameterServerRegime::note(int optimizer, int server, int worker,
                                 const UpdateLedger& ledger) {
  const std::lock_guard lock(mutex_);
  ledgers_[{optimizer, server, worker}] = ledger;
}

ParameterServerReport ParameterServerRegime::report() const {
  const std::lock_guard lock(mutex_);
  ParameterServerReport report{.placements = placements_};
  for (const auto& [key, ledger] : ledgers_)
    report.shards.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), ledger});
  return report;
}

std::map<std::pair<int, int>, std::shared_ptr<ParameterServer>>
ParameterServerRegime::local_servers() const {
  const std::lock_guard lock(mutex_);
  return servers_;
}

}  // namespace troupe::learners
