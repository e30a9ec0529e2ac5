// Sync groups and asynchronous replicas over sharded servers: they learn, count exactly, and
// outlive workers and servers.
#include "learners/parameter_servers/regime.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <csignal>

#include "learners/parameter_servers/wire.hpp"
#include "learners/replicas/local_processes.hpp"
#include "learners/replicas/replicator.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

constexpr int kLayers = 4;

OptimizerFactory sgd() {
  return optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.02).momentum(0.5));
}

// Least squares through a product of layers of different sizes; reports loss and all parameters.
ReplicaFunction products(const OptimizerFactory& factory) {
  return [=](ReplicaContext& context) -> StepFunctions {
    Tensors layers;
    const std::int64_t sizes[] = {6, 12, 3, 8, 1};
    for (int i = 0; i < kLayers; ++i) {
      const std::int64_t rows = sizes[i], columns = sizes[i + 1];
      // Other groups start elsewhere: what they were given has to win.
      layers.push_back(
          (at::sin(at::arange(rows * columns, at::kFloat) + i + context.place().group * 9.0) * 0.5)
              .reshape({rows, columns})
              .requires_grad_(true));
    }
    const std::shared_ptr<ReplicaOptimizer> wrapped = context.wrap_optimizer(layers, factory);
    const at::Tensor x =
        at::cos(at::arange(48, at::kFloat) * 0.9 + context.id_in_sync()).reshape({8, 6});
    const at::Tensor y = x.sum(1, true) * 0.3;
    return {{"train", [=](const Tensors&) {
               wrapped->zero_grad();
               at::Tensor out = x;
               for (const at::Tensor& layer : layers) out = at::mm(out, layer);
               const at::Tensor loss = (out - y).square().mean();
               torch::autograd::backward({loss}, {});
               wrapped->step();
               Tensors flat;
               for (const at::Tensor& layer : layers) flat.push_back(layer.detach().flatten());
               return Tensors{loss.detach(), at::cat(flat)};
             }}};
  };
}

struct Outcome {
  double first_loss = 0, last_loss = 0;
  std::vector<at::Tensor> values;  // of the local replicas
};

Result<Outcome> trained(Replicator& replicator, int steps) {
  Outcome outcome;
  for (int i = 0; i < steps; ++i) {
    const auto reports = replicator.step();
    if (!reports) return tl::unexpected(reports.error());
    outcome.last_loss = (*reports)[0][0].item<double>();
    if (i == 0) outcome.first_loss = outcome.last_loss;
    outcome.values.clear();
    for (const Tensors& report : *reports) outcome.values.push_back(report[1]);
  }
  return outcome;
}

TEST(ParameterServerRegime, OfOneGroupIsTheSynchronousOneBitForBit) {
  for (const OptimizerFactory& factory :
       {sgd(), optimizer<torch::optim::Adam>(torch::optim::AdamOptions(0.01))}) {
    const auto all_reduce = Replicator::make({.replicas = 2}, {}, products(factory));
    const auto servers = Replicator::make({.replicas = 2, .sync_groups = 1, .parameter_servers = 3},
                                          {}, products(factory));
    ASSERT_TRUE(servers) << servers.error().message;
    const auto one = trained(**all_reduce, 50), other = trained(**servers, 50);
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_TRUE(one->values[0].equal(other->values[0]));
    EXPECT_TRUE(other->values[1].equal(other->values[0]));
  }
}

TEST(ParameterServerRegime, LearnsInGroupsAndAloneAndCountsExactly) {
  for (const int groups : {2, 4}) {
    const auto replicator = Replicator::make(
        {.replicas = 4, .sync_groups = groups, .parameter_servers = 2}, {}, products(sgd()));
    ASSERT_TRUE(replicator) << replicator.error().message;
    const auto outcome = trained(**replicator, 300);
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_GT(outcome->first_loss, 0.1);
    EXPECT_LT(outcome->last_loss, 1e-3);
    ParameterServerRegime& regime = *(*replicator)->parameter_servers();
    const ParameterServerReport report = regime.report();
    EXPECT_EQ(report.shards.size(), static_cast<std::size_t>(2 * groups));
    std::map<int, std::uint64_t> applied;  // by server
    for (const auto& shard : report.shards) {
      const auto server = regime.local_servers().at({shard.optimizer, shard.server});
      const ServerState state = *server->state({shard.worker, 0});
      EXPECT_EQ(shard.ledger.sent, state.applied + shard.ledger.rolled_back);
      EXPECT_EQ(shard.ledger.sent + shard.ledger.refused, 300U);
      applied[shard.server] += state.applied;
    }
    for (const auto& [server, sum] : applied)
      EXPECT_EQ(sum, regime.local_servers().at({0, server})->telemetry().version);
    // 72, 36, 24 and 8 floats: 72 on one server, 68 on the other.
    EXPECT_EQ(report.placements.at(0).bytes, (std::vector<std::int64_t>{288, 272}));
    EXPECT_NEAR(report.placements.at(0).imbalance(), 1.03, 0.01);
  }
}

TEST(ParameterServerRegime, CombinesWithLogicalDevices) {
  const auto model = [](ReplicaContext& context) -> StepFunctions {
    const at::Device front = context.logical_device(0), back = context.logical_device(1);
    const at::Tensor a = at::full({2, 2}, 0.5, at::TensorOptions(front)).requires_grad_(true);
    const at::Tensor b = at::full({2, 1}, 0.5, at::TensorOptions(back)).requires_grad_(true);
    const std::shared_ptr<ReplicaOptimizer> wrapped = context.wrap_optimizer(
        {a, b}, optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.002)));
    return {{"train", [=](const Tensors&) {
               wrapped->zero_grad();
               const at::Tensor hidden = at::mm(at::ones({3, 2}, at::TensorOptions(front)), a);
               const at::Tensor loss = (at::mm(hidden.to(back), b) - 3).square().mean();
               torch::autograd::backward({loss}, {});
               wrapped->step();
               return Tensors{loss.detach(), a.detach()};
             }}};
  };
  for (const int groups : {0, 2, 4}) {
    const auto replicator = Replicator::make(
        {.replicas = 4, .sync_groups = groups, .logical_devices = {"cpu:0", "cpu:1"}}, {}, model);
    ASSERT_TRUE(replicator) << replicator.error().message;
    const auto outcome = trained(**replicator, 600);
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_LT(outcome->last_loss, 1e-3);
  }
}

TEST(ParameterServerRegime, TellsThoseThatWaitForValuesThatNobodyWillBring) {
  const auto start = std::chrono::steady_clock::now();
  const auto replicator =
      Replicator::make({.replicas = 3, .parameter_servers = 1}, {}, [](ReplicaContext& context) {
        if (context.id() == 0) throw std::runtime_error("no such network");
        return products(sgd())(context);
      });
  ASSERT_FALSE(replicator);
  EXPECT_NE(replicator.error().message.find("no such network"), std::string::npos)
      << replicator.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

// Requests of children: the first byte says for whom, 0 the rendezvous, 1 + i server i.
class AddressedLink final : public RequestLink {
 public:
  AddressedLink(std::shared_ptr<RequestLink> link, std::uint8_t address)
      : link_(std::move(link)), address_(address) {}
  Result<std::vector<std::uint8_t>> ask(std::span<const std::uint8_t> request,
                                        std::chrono::milliseconds timeout) override {
    models::ByteWriter addressed;
    addressed.put(address_);
    addressed.put_values(request);
    return link_->ask(addressed.bytes(), timeout);
  }

 private:
  std::shared_ptr<RequestLink> link_;
  std::uint8_t address_;
};

// Two servers in the parent that die and come back from their last snapshot now and then.
class Host {
 public:
  explicit Host(int requests_per_death) : requests_per_death_(requests_per_death) {
    for (int i = 0; i < 2; ++i) restart(i);
  }

  std::vector<std::uint8_t> answer(std::span<const std::uint8_t> request) {
    const std::lock_guard lock(mutex_);
    if (request.empty()) return {};
    if (request[0] == 0) return table_.handle(request.subspan(1));
    const int index = request[0] - 1;
    auto reply = learners::answer(*servers[index], request.subspan(1));
    ++requests_;
    if (requests_ % 5 == 0) snapshots_[index] = *servers[index]->snapshot();
    if (requests_per_death_ > 0 && requests_ % requests_per_death_ == 0) {
      restart(index);
      ++deaths;
    }
    return reply;
  }

  std::map<int, std::unique_ptr<ParameterServer>> servers;
  int deaths = 0;

 private:
  void restart(int index) {
    servers[index] = std::make_unique<ParameterServer>(
        sgd(), ParameterServerOptions{.staleness = 100, .incarnation = incarnation_++});
    if (snapshots_.contains(index)) {
      EXPECT_TRUE(servers[index]->restore(snapshots_[index]));
    }
  }

  std::mutex mutex_;
  RendezvousTable table_;
  std::map<int, std::vector<std::uint8_t>> snapshots_;
  int requests_per_death_, requests_ = 0;
  std::uint32_t incarnation_ = 0;
};

// Trains in two processes of two replicas, each a group; process 1 is killed at `death`, if any.
// True: this process learned and its ledger agrees with what the servers say.
bool train_in_process(int index, const std::shared_ptr<RequestLink>& link, int death,
                      std::uint32_t incarnation = 0) {
  at::set_num_threads(1);
  ::alarm(280);  // a hang fails
  const auto service = [&](int, int server) {
    return std::shared_ptr<ParameterService>(make_remote_service(
        std::make_shared<AddressedLink>(link, static_cast<std::uint8_t>(1 + server)),
        std::chrono::seconds(10)));
  };
  const Processes processes{.index = index,
                            .count = 2,
                            .incarnation = incarnation,
                            .rendezvous = std::make_shared<AddressedLink>(link, 0),
                            .parameter_services = service};
  const auto replicator = Replicator::make(
      {.replicas = 2, .sync_groups = 2, .parameter_servers = 2}, processes, products(sgd()));
  if (!replicator) return std::fprintf(stderr, "%s\n", replicator.error().message.c_str()), false;
  if (index == 1 && death > 0) {
    static_cast<void>(trained(**replicator, death));
    ::raise(SIGKILL);
  }
  const auto outcome = trained(**replicator, 300);
  if (!outcome) return std::fprintf(stderr, "%s\n", outcome.error().message.c_str()), false;
  bool right = outcome->last_loss < 1e-3 && outcome->values[0].equal(outcome->values[1]);
  for (const auto& shard : (*replicator)->parameter_servers()->report().shards)
    right = right && shard.ledger.sent + shard.ledger.refused == 300;
  return right;
}

TEST(ParameterServerRegime, GoesOnWhenAWorkersProcessIsKilled) {
  Host host(0);
  const auto ended = run_local_processes(
      2,
      [](int index, std::shared_ptr<RequestLink> link) {
        return train_in_process(index, link, 50) ? 0 : 1;
      },
      {.answer = [&](std::span<const std::uint8_t> request) { return host.answer(request); }});
  EXPECT_TRUE(ended[0].clean());
  EXPECT_TRUE(ended[1].killed_by(SIGKILL));
  for (const auto& [index, server] : host.servers) {
    EXPECT_EQ(server->state({1, 0})->applied, 50U);
    EXPECT_EQ(server->telemetry().version, 50 + server->state({0, 0})->applied);
  }
}

TEST(ParameterServerRegime, CountsAWorkerThatWasStartedAgainFromItsFirstUpdate) {
  Host host(0);
  const auto run = [&](int death, std::uint32_t incarnation) {
    return run_local_processes(
        1,
        [=](int, std::shared_ptr<RequestLink> link) {
          return train_in_process(1, link, death, incarnation) ? 0 : 1;
        },
        {.answer = [&](std::span<const std::uint8_t> request) { return host.answer(request); }})[0];
  };
  // Group 0 gives the first values.
  EXPECT_TRUE(run_local_processes(1,
                                  [](int, std::shared_ptr<RequestLink> link) {
                                    return train_in_process(0, link, 0) ? 0 : 1;
                                  },
                                  {.answer =
                                       [&](std::span<const std::uint8_t> request) {
                                         return host.answer(request);
                                       }})[0]
                  .clean());
  EXPECT_TRUE(run(50, 1).killed_by(SIGKILL));
  for (const auto& [index, server] : host.servers) EXPECT_EQ(server->telemetry().version, 350U);
  EXPECT_TRUE(run(0, 2).clean());
  for (const auto& [index, server] : host.servers) {
    EXPECT_EQ(server->telemetry().version, 650U);
    EXPECT_EQ(server->state({1, 2})->applied, 300U);
  }
}

TEST(ParameterServerRegime, GoesOnWhenServersDie) {
  Host host(97);
  const auto ended = run_local_processes(
      2,
      [](int index, std::shared_ptr<RequestLink> link) {
        return train_in_process(index, link, 0) ? 0 : 1;
      },
      {.answer = [&](std::span<const std::uint8_t> request) { return host.answer(request); }});
  for (const LocalProcess& process : ended) EXPECT_TRUE(process.clean());
  EXPECT_GT(host.deaths, 3);
}

}  // namespace
}  // namespace troupe::learners
