// Parameter servers and their workers: what is applied, refused and rolled back, counted exactly,
// with servers that die at any moment.
#include "learners/parameter_servers/server.hpp"

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <thread>

#include "envs/spec/random.hpp"
#include "learners/parameter_servers/wire.hpp"
#include "learners/parameter_servers/worker.hpp"
#include "learners/replicas/fused_adam.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

using std::chrono::milliseconds;

OptimizerFactory sgd(double rate = 1) {
  return optimizer<torch::optim::SGD>(torch::optim::SGDOptions(rate));
}

Tensors ones(double value) { return {at::full({3}, value), at::full({2, 2}, value, at::kDouble)}; }

// A server that can die and come back, at the other end of an encoded link that loses answers.
class MortalService final : public ParameterService {
 public:
  explicit MortalService(OptimizerFactory factory) : factory_(std::move(factory)) { restart({}); }

  void restart(const std::vector<std::uint8_t>& snapshot) {
    server = std::make_unique<ParameterServer>(
        factory_, ParameterServerOptions{.staleness = 1000, .incarnation = incarnation_++});
    if (!snapshot.empty()) {
      ASSERT_TRUE(server->restore(snapshot));
    }
  }

  Result<ServerState> state(WorkerId worker) override {
    return through([&](ParameterService& remote) { return remote.state(worker); });
  }
  Result<void> initialise(const Tensors& values) override {
    return through([&](ParameterService& remote) { return remote.initialise(values); });
  }
  Result<Tensors> values() override {
    return through([&](ParameterService& remote) { return remote.values(); });
  }
  Result<PushReply> push(const Push& push) override {
    return through([&](ParameterService& remote) { return remote.push(push); });
  }
  Result<void> keep(std::span<const std::uint8_t> bytes) override {
    return through([&](ParameterService& remote) { return remote.keep(bytes); });
  }
  Result<std::vector<std::uint8_t>> kept() override {
    return through([&](ParameterService& remote) { return remote.kept(); });
  }

  std::unique_ptr<ParameterServer> server;
  std::function<void()> before_call, after_call;  // may restart the server
  std::function<bool()> loses_answer = [] { return false; };

 private:
  class Link final : public RequestLink {
   public:
    explicit Link(ParameterServer& server) : server_(server) {}
    Result<std::vector<std::uint8_t>> ask(std::span<const std::uint8_t> request,
                                          milliseconds) override {
      return answer(server_, request);
    }

   private:
    ParameterServer& server_;
  };

  template <class Call>
  auto through(Call call) -> decltype(call(*this)) {
    if (before_call) before_call();
    const auto remote = make_remote_service(std::make_shared<Link>(*server), milliseconds(10));
    auto result = call(*remote);
    if (after_call) after_call();
    if (loses_answer()) return fail(ErrorCode::kTimeout, "no answer");
    return result;
  }

  OptimizerFactory factory_;
  std::uint32_t incarnation_ = 0;
};

TEST(ParameterServer, AppliesEachNumberOnce) {
  ParameterServer server(sgd(), {});
  EXPECT_FALSE(server.values());
  ASSERT_TRUE(server.initialise(ones(5)));
  ASSERT_TRUE(server.initialise(ones(9)));  // has values
  Push push{.worker = {1, 0}, .sequence = 1, .gradients = ones(2)};
  EXPECT_EQ(server.push(push)->outcome, PushOutcome::kApplied);
  const PushReply again = *server.push(push);
  EXPECT_EQ(again.outcome, PushOutcome::kApplied);
  EXPECT_EQ(again.version, 1U);
  EXPECT_TRUE(again.values[0].equal(at::full({3}, 3.0F)));
  EXPECT_EQ(server.telemetry().repeated, 1U);
  EXPECT_EQ(server.state({1, 0})->applied, 1U);
  EXPECT_EQ(server.state({2, 0})->applied, 0U);
}

TEST(ParameterServer, RefusesWhatIsTooStaleAndWhatDoesNotFit) {
  ParameterServer server(sgd(), {.staleness = 2});
  ASSERT_TRUE(server.initialise(ones(0)));
  for (std::uint64_t i = 1; i <= 3; ++i)
    ASSERT_TRUE(
        server.push({.worker = {1, 0}, .sequence = i, .version = i - 1, .gradients = ones(1)}));
  const PushReply stale =
      *server.push({.worker = {2, 0}, .sequence = 1, .version = 0, .gradients = ones(1)});
  EXPECT_EQ(stale.outcome, PushOutcome::kStale);
  EXPECT_EQ(stale.version, 3U);
  EXPECT_TRUE(stale.values[0].equal(at::full({3}, -3.0F)));
  EXPECT_EQ(
      server.push({.worker = {2, 0}, .sequence = 1, .version = 1, .gradients = ones(1)})->outcome,
      PushOutcome::kApplied);
  EXPECT_EQ(server.telemetry().staleness_max, 2U);
  EXPECT_EQ(server.telemetry().refused, 1U);
  EXPECT_FALSE(
      server.push({.worker = {2, 0}, .sequence = 2, .version = 4, .gradients = {at::zeros({3})}}));
  EXPECT_FALSE(server.push({.worker = {2, 0},
                            .sequence = 2,
                            .version = 4,
                            .gradients = {at::zeros({4}), at::zeros({2, 2})}}));
  // A worker that was started again counts from 0, and its predecessor is not heard any more.
  EXPECT_EQ(server.state({1, 1})->applied, 0U);
  EXPECT_FALSE(server.push({.worker = {1, 0}, .sequence = 9, .version = 4, .gradients = ones(1)}));
}

TEST(ParameterServer, GoesOnBitwiseFromItsSnapshot) {
  for (const OptimizerFactory& factory :
       {optimizer<torch::optim::Adam>(torch::optim::AdamOptions(0.1)),
        optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9)),
        fused_adam({.learning_rate = 0.1})}) {
    ParameterServer one(factory, {});
    const Tensors first = {at::linspace(-1, 1, 7)};
    ASSERT_TRUE(one.initialise(first));
    const auto push = [](ParameterServer& server, std::uint64_t sequence) {
      const Tensors gradients = {
          at::sin(at::arange(7, at::kFloat) * static_cast<double>(sequence))};
      return server.push({.worker = {0, 0},
                          .sequence = sequence,
                          .version = sequence - 1,
                          .gradients = gradients});
    };
    for (std::uint64_t i = 1; i <= 10; ++i) ASSERT_TRUE(push(one, i));
    const auto snapshot = one.snapshot();
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    ParameterServer two(factory, {});
    const Result<void> restored = two.restore(*snapshot);
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(two.state({0, 0})->applied, 10U);
    for (std::uint64_t i = 11; i <= 20; ++i) ASSERT_TRUE(push(one, i) && push(two, i));
    EXPECT_TRUE((*one.values())[0].equal((*two.values())[0]));
  }
}

TEST(ParameterServer, RefusesASnapshotThatIsCutOff) {
  ParameterServer server(sgd(), {});
  ASSERT_TRUE(server.initialise(ones(1)));
  const std::vector<std::uint8_t> whole = *server.snapshot();
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    ParameterServer other(sgd(), {});
    EXPECT_FALSE(other.restore(std::span(whole).first(size))) << size;
  }
}

TEST(ParameterServer, AnswersAnyBytes) {
  ParameterServer server(sgd(), {});
  ASSERT_TRUE(server.initialise(ones(1)));
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::uint8_t> request(random.below(60));
    for (std::uint8_t& byte : request) byte = static_cast<std::uint8_t>(random.below(5));
    EXPECT_FALSE(answer(server, request).empty());
  }
}

TEST(ParameterServer, RefusesWorkersThatThereAreNotAndNumbersThatAreNone) {
  ParameterServer server(sgd(), {.workers = 2});
  ASSERT_TRUE(server.initialise(ones(1)));
  EXPECT_TRUE(server.state({1, 0}));
  for (const int stranger : {-1, 2}) {
    EXPECT_FALSE(server.state({stranger, 0}));
    EXPECT_FALSE(server.push({.worker = {stranger, 0}, .sequence = 1, .gradients = ones(1)}));
  }
  Tensors poisoned = ones(1);
  poisoned[1][0][1] = std::nan("");
  const auto push = server.push({.worker = {1, 0}, .sequence = 1, .gradients = poisoned});
  ASSERT_FALSE(push);
  EXPECT_EQ(push.error().message, "A gradient of worker 1 is not finite.");
  EXPECT_EQ(server.telemetry().version, 0U);
}

TEST(ParameterServer, KeepsWhatWorkersLeaveForEachOtherAndWhatTheDeadHadApplied) {
  ParameterServer server(sgd(), {});
  ASSERT_TRUE(server.initialise(ones(1)));
  const auto remote = [&](ParameterServer& to) {
    class Link final : public RequestLink {
     public:
      explicit Link(ParameterServer& at) : at_(at) {}
      Result<std::vector<std::uint8_t>> ask(std::span<const std::uint8_t> request,
                                            milliseconds) override {
        return answer(at_, request);
      }

     private:
      ParameterServer& at_;
    };
    return make_remote_service(std::make_shared<Link>(to), milliseconds(10));
  };
  EXPECT_TRUE(remote(server)->kept()->empty());
  const std::vector<std::uint8_t> left = {1, 2, 3};
  ASSERT_TRUE(remote(server)->keep(left));
  EXPECT_FALSE(server.keep(std::vector<std::uint8_t>(kMostKeptBytes + 1)));
  for (const std::uint32_t life : {0U, 1U, 2U})
    ASSERT_TRUE(server.push({.worker = {0, life}, .sequence = 1, .gradients = ones(1)}));
  ParameterServer other(sgd(), {});
  ASSERT_TRUE(other.restore(*server.snapshot()));
  EXPECT_EQ(*remote(other)->kept(), left);
  EXPECT_EQ(other.telemetry().version, 3U);
  EXPECT_EQ(other.state({0, 2})->applied, 1U);
}

// What cannot be trained leaves the server as it was, not half made.
TEST(ParameterServer, RefusesParametersThatAreNoNumbersToTrain) {
  ParameterServer server(sgd(), {});
  const Tensors mixed = {at::ones({3}), at::ones({3}, at::kLong)};
  EXPECT_FALSE(server.initialise(mixed));
  EXPECT_FALSE(server.state({0, 0})->ready);
  EXPECT_TRUE(server.initialise(ones(1)));
}

TEST(ParameterServer, StaysEmptyWhenAnotherOptimizersStateDoesNotFit) {
  ParameterServer adam(optimizer<torch::optim::Adam>(torch::optim::AdamOptions(0.1)), {});
  ASSERT_TRUE(adam.initialise(ones(1)));
  std::vector<std::uint8_t> snapshot = *adam.snapshot();
  snapshot[snapshot.size() - 40] ^= 0xff;  // in the optimizer's archive
  ParameterServer other(sgd(), {});
  const bool restored = other.restore(snapshot).has_value();
  EXPECT_EQ(other.state({0, 0})->ready, restored);
}

TEST(ParameterWorker, CountsExactlyWhateverDies) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const auto service = std::make_shared<MortalService>(sgd());
    ParameterWorker worker(service, {0, 0}, std::chrono::seconds(20));
    const Tensors first = ones(0);
    ASSERT_TRUE(worker.begin(&first));
    std::vector<std::uint8_t> snapshot = *service->server->snapshot();
    std::uint64_t deaths = 0;
    const auto perhaps_die = [&] {
      if (random.below(10) == 0) snapshot = *service->server->snapshot();
      if (random.below(12) != 0) return;
      service->restart(snapshot);
      ++deaths;
    };
    service->before_call = service->after_call = perhaps_die;
    service->loses_answer = [&] { return random.below(8) == 0; };
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(worker.update(ones(-1)));
    // Once more without accidents, so that nothing is under way.
    service->before_call = service->after_call = {};
    service->loses_answer = [] { return false; };
    const Result<Tensors> values = worker.update(ones(-1));
    ASSERT_TRUE(values);
    const UpdateLedger& ledger = worker.ledger();
    const ServerState state = *service->state({0, 0});
    EXPECT_EQ(ledger.sent, 201U);
    EXPECT_EQ(ledger.sent, state.applied + ledger.rolled_back) << "seed " << seed;
    EXPECT_GT(ledger.rolled_back, 0U);
    EXPECT_GT(deaths, 0U);
    // Every applied update added 1: the values say the same.
    EXPECT_EQ((*values)[0][0].item<double>(), static_cast<double>(state.applied));
  }
}

TEST(ParameterWorker, GivesUpOnAServerThatStaysAway) {
  const auto service = std::make_shared<MortalService>(sgd());
  ParameterWorker worker(service, {0, 0}, milliseconds(50));
  const Result<Tensors> nothing = worker.begin(nullptr);
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.find("it has no values"), std::string::npos);
  const Tensors first = ones(0);
  ASSERT_TRUE(worker.begin(&first));
  service->loses_answer = [] { return true; };
  EXPECT_FALSE(worker.update(ones(1)));
}

// Small questions are answered while every push is lost: patience ends all the same.
TEST(ParameterWorker, GivesUpOnAServerThatAnswersEverythingButPushes) {
  class Deaf final : public ParameterService {
   public:
    explicit Deaf(ParameterServer& server) : server_(server) {}
    Result<ServerState> state(WorkerId worker) override { return server_.state(worker); }
    Result<void> initialise(const Tensors& values) override { return server_.initialise(values); }
    Result<Tensors> values() override { return server_.values(); }
    Result<PushReply> push(const Push&) override { return fail(ErrorCode::kTimeout, "no answer"); }
    Result<void> keep(std::span<const std::uint8_t> bytes) override { return server_.keep(bytes); }
    Result<std::vector<std::uint8_t>> kept() override { return server_.kept(); }

   private:
    ParameterServer& server_;
  };
  ParameterServer server(sgd(), {});
  ParameterWorker worker(std::make_shared<Deaf>(server), {0, 0}, milliseconds(100));
  const Tensors first = ones(0);
  ASSERT_TRUE(worker.begin(&first));
  const Result<Tensors> update = worker.update(ones(1));
  ASSERT_FALSE(update);
  EXPECT_EQ(update.error().code, ErrorCode::kTimeout);
}

TEST(ParameterWorkers, ShareAServerWithoutLosingAnUpdate) {
  const auto server =
      std::make_shared<ParameterServer>(sgd(), ParameterServerOptions{.staleness = 1000000});
  ASSERT_TRUE(server->initialise(ones(0)));
  std::vector<std::jthread> threads;
  for (int id = 0; id < 4; ++id)
    threads.emplace_back([&, id] {
      ParameterWorker worker(server, {id, 0}, std::chrono::seconds(20));
      ASSERT_TRUE(worker.begin(nullptr));
      // One of them dies half way; the others do not mind.
      for (int i = 0; i < (id == 3 ? 100 : 250); ++i) ASSERT_TRUE(worker.update(ones(-1)));
      EXPECT_EQ(worker.ledger().sent, server->state({id, 0})->applied);
    });
  threads.clear();
  EXPECT_EQ(server->telemetry().version, 850U);
  EXPECT_EQ((*server->values())[0][0].item<double>(), 850);
}

}  // namespace
}  // namespace troupe::learners
