// Implements the store that c10d asks, over a rendezvous, and the exchange.
#include "learners/collectives/gloo.hpp"

#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <csignal>
#include <cstdlib>
#include <mutex>
#include <string>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

using Bytes = std::vector<std::uint8_t>;

// c10d's contract is exceptions.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result) C10_THROW_ERROR(DistBackendError, result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

class RendezvousStore final : public c10d::Store {
 public:
  explicit RendezvousStore(std::shared_ptr<RendezvousClient> client)
      : c10d::Store(client->timeout()), client_(std::move(client)) {}

  c10::intrusive_ptr<Store> clone() override {
    return c10::make_intrusive<RendezvousStore>(client_);
  }
  void set(const std::string& key, const Bytes& value) override {
    value_or_throw(client_->set(key, value));
  }
  Bytes compareSet(const std::string& key, const Bytes& current, const Bytes& wanted) override {
    return value_or_throw(client_->compare_set(key, current, wanted));
  }
  Bytes get(const std::string& key) override { return value_or_throw(client_->get(key, timeout_)); }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return value_or_throw(client_->add(key, amount));
  }
  bool deleteKey(const std::string& key) override { return value_or_throw(client_->erase(key)); }
  bool check(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys)
      if (!value_or_throw(client_->find(key))) return false;
    return true;
  }
  std::int64_t getNumKeys() override { return value_or_throw(client_->count()); }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    for (const std::string& key : keys) value_or_throw(client_->get(key, timeout));
  }

 private:
  std::shared_ptr<RendezvousClient> client_;
};

// Blocks SIGPIPE in this thread, and in the threads that it starts meanwhile: Gloo's write into
// connections without looking whether the peer is still there, which would end the process.
class WithoutBrokenPipes {
 public:
  WithoutBrokenPipes() {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~WithoutBrokenPipes() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutBrokenPipes(const WithoutBrokenPipes&) = delete;
  WithoutBrokenPipes& operator=(const WithoutBrokenPipes&) = delete;

 private:
  sigset_t before_;
};

at::ScalarType scalar_type(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return at::kFloat;
    case ElementType::kF64:
      return at::kDouble;
    case ElementType::kI32:
      return at::kInt;
    case ElementType::kI64:
      return at::kLong;
    case ElementType::kF16:
      return at::kHalf;
    case ElementType::kBf16:
      return at::kBFloat16;
  }
  return at::kByte;
}

at::Tensor view(std::span<const std::uint8_t> bytes) {
  return at::from_blob(const_cast<std::uint8_t*>(bytes.data()),
                       {static_cast<std::int64_t>(bytes.size())}, at::kByte);
}

// c10d's flight recorder keeps the last calls of all groups of a process in one map, without a
// lock: groups of two threads crash in it (PyTorch 2.11). Nobody reads it here; a user's own
// setting counts.
void switch_flight_recorder_off() {
  static std::once_flag once;
  std::call_once(once, [] { setenv("TORCH_FR_BUFFER_SIZE", "0", 0); });
}

class GlooExchange final : public Exchange {
 public:
  GlooExchange(std::shared_ptr<RendezvousClient> rendezvous, int rank, int size,
               const GlooOptions& options)
      : rendezvous_(std::move(rendezvous)), rank_(rank), size_(size) {
    switch_flight_recorder_off();
    const WithoutBrokenPipes guard;
    auto settings = c10d::ProcessGroupGloo::Options::create(options.timeout);
    settings->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(options.address));
    settings->threads = 1;  // calls come one after the other
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<RendezvousStore>(rendezvous_), rank, size, settings);
  }
  ~GlooExchange() override { leave({}); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Result<void> gather(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    return attempt([&] {
      if (mine.empty()) return;
      at::Tensor input = view(mine), output = view(all);
      group_->_allgather_base(output, input)->wait();
    });
  }
  Result<void> reduce(Elements values, ReduceOp op) override {
    return values.type == ElementType::kBf16 || values.type == ElementType::kF16
               ? reduce_gathered(values, op)
               : attempt([&] {
                   std::vector<at::Tensor> tensors = {
                       at::from_blob(values.data, {values.count}, scalar_type(values.type))};
                   c10d::AllreduceOptions options;
                   options.reduceOp = op == ReduceOp::kMin   ? c10d::ReduceOp::MIN
                                      : op == ReduceOp::kMax ? c10d::ReduceOp::MAX
                                                             : c10d::ReduceOp::SUM;
                   group_->allreduce(tensors, options)->wait();
                 });
  }
  Result<void> broadcast(std::span<std::uint8_t> bytes, int from) override {
    return attempt([&] {
      if (bytes.empty()) return;
      std::vector<at::Tensor> tensors = {view(bytes)};
      c10d::BroadcastOptions options;
      options.rootRank = from;
      group_->broadcast(tensors, options)->wait();
    });
  }

  // Closing the connections is what others notice; the rendezvous keeps the reason for them.
  void leave(std::string_view reason) override {
    if (!group_) return;
    if (!reason.empty())
      static_cast<void>(rendezvous_->set(kReason, Bytes(reason.begin(), reason.end())));
    failure_ = "This rank left" + (reason.empty() ? "." : ": " + std::string(reason));
    group_.reset();
  }

 private:
  static constexpr const char* kReason = "left";

  // Sums in f32 in the order of the ranks, which Gloo does not for 16-bit floats.
  Result<void> reduce_gathered(Elements values, ReduceOp op) {
    std::vector<std::uint8_t> all(static_cast<std::size_t>(size_) * values.bytes());
    if (Result<void> done = gather(values.as_bytes(), all); !done) return done;
    std::vector<const void*> sources;
    for (int rank = 0; rank < size_; ++rank)
      sources.push_back(all.data() + static_cast<std::size_t>(rank) * values.bytes());
    const std::array<void*, 1> destinations = {values.data};
    learners::reduce(values.type, op, values.count, sources, destinations);
    return {};
  }

  template <class Work>
  Result<void> attempt(Work work) {
    if (!group_) return fail(ErrorCode::kUnavailable, failure_);
    try {
      work();
      return {};
    } catch (const std::exception& error) {
      std::string text = error.what();
      text = text.substr(0, text.find('\n'));  // without the library's stack
      // The first to fail says why; for the others the connection just closed.
      const auto reason = rendezvous_->compare_set(kReason, {}, Bytes(text.begin(), text.end()));
      if (reason && std::string(reason->begin(), reason->end()) != text)
        text = std::string(reason->begin(), reason->end()) + " (" + text + ")";
      group_.reset();
      failure_ = text;
      return fail(ErrorCode::kUnavailable, text);
    }
  }

  std::shared_ptr<RendezvousClient> rendezvous_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;  // none once the rank has left
  int rank_, size_;
  std::string failure_;
};

}  // namespace

Result<std::unique_ptr<Exchange>> make_gloo_exchange(std::shared_ptr<RendezvousClient> rendezvous,
                                                     int rank, int size,
                                                     const GlooOptions& options) try {
  return std::make_unique<GlooExchange>(std::move(rendezvous), rank, size, options);
} catch (const std::exception& error) {
  const std::string text = error.what();
  return fail(ErrorCode::kUnavailable,
              "Rank " + std::to_string(rank) + " of " + std::to_string(size) +
                  " cannot join the Gloo group: " + text.substr(0, text.find('\n')));
}

}  // namespace troupe::learners
