// Implements the ring. What travels are frames: kind, size, payload.
#include "learners/collectives/ring.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe::learners {
namespace {

enum FrameKind : std::uint32_t { kData = 0x74706501, kError = 0x74706502 };
struct Frame {
  std::uint32_t kind = kData;
  std::uint32_t reserved = 0;
  std::uint64_t bytes = 0;
};

constexpr std::size_t kBlock = 128 << 10;     // what is received and reduced, or passed on, at once
constexpr std::size_t kLongestReason = 4096;  // of an error frame
constexpr std::chrono::milliseconds kFarewell(1000);

// Sends frames in the background, in order.
class Sender {
 public:
  Sender(std::unique_ptr<ByteSender> link, std::chrono::milliseconds timeout)
      : link_(std::move(link)), timeout_(timeout), thread_([this] { run(); }) {}
  ~Sender() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
  }

  // `payload` stays as it is until it has been sent: see flush().
  void data(std::span<const std::uint8_t> payload) { push({kData, payload, {}}); }
  void error(std::string reason) { push({kError, {}, std::move(reason)}); }
  // Forgets what waits; returns when no payload is looked at any more, at most a timeout later.
  void abandon() {
    std::unique_lock lock(mutex_);
    while (queue_.size() > (sending_ ? 1U : 0U)) queue_.pop_back();
    changed_.wait(lock, [&] { return queue_.empty(); });
  }
  Result<void> flush() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.empty() || !state_; });
    return state_;
  }

 private:
  struct Item {
    FrameKind kind;
    std::span<const std::uint8_t> payload;
    std::string reason;
  };

  void push(Item item) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(item));
    changed_.notify_all();
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !queue_.empty() || ending_; });
      if (queue_.empty()) return;
      const Item& item = queue_.front();  // stays where it is: only this thread takes
      const auto timeout = ending_ ? std::min(timeout_, kFarewell) : timeout_;
      const bool good = state_.has_value();
      sending_ = true;
      lock.unlock();
      Result<void> sent = good ? send(item, timeout) : Result<void>{};
      lock.lock();
      if (!sent) state_ = std::move(sent);
      sending_ = false;
      queue_.pop_front();
      changed_.notify_all();
    }
  }
  Result<void> send(const Item& item, std::chrono::milliseconds timeout) {
    std::span<const std::uint8_t> payload = item.payload;
    if (item.kind == kError)
      payload = {reinterpret_cast<const std::uint8_t*>(item.reason.data()), item.reason.size()};
    const Frame frame{item.kind, 0, payload.size()};
    std::array<std::uint8_t, sizeof(Frame)> bytes;
    std::memcpy(bytes.data(), &frame, sizeof(frame));
    Result<void> sent = link_->send(bytes, timeout);
    return sent && !payload.empty() ? link_->send(payload, timeout) : sent;
  }

  std::unique_ptr<ByteSender> link_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  Result<void> state_;
  bool ending_ = false, sending_ = false;
  std::jthread thread_;  // last: ends before what it uses
};

class Ring final : public Exchange {
 public:
  Ring(int rank, int size, std::unique_ptr<ByteSender> next, std::unique_ptr<ByteReceiver> previous,
       std::chrono::milliseconds timeout)
      : rank_(rank),
        size_(size),
        previous_(std::move(previous)),
        timeout_(timeout),
        block_(kBlock),
        sender_(std::move(next), timeout) {}
  ~Ring() override { leave({}); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Result<void> gather(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    if (Result<void> alive = standing(); !alive) return alive;
    const auto place = [&](int rank) {
      return all.subspan(static_cast<std::size_t>(turn(rank)) * mine.size(), mine.size());
    };
    std::copy(mine.begin(), mine.end(), place(rank_).begin());
    for (int step = 0; step + 1 < size_; ++step) {
      sender_.data(place(rank_ - step));
      if (Result<void> got = receive(place(rank_ - step - 1)); !got) return got;
    }
    return finish();
  }

  Result<void> broadcast(std::span<std::uint8_t> data, int from) override {
    if (Result<void> alive = standing(); !alive) return alive;
    const bool last = turn(rank_ + 1) == from;
    for (std::size_t at = 0; at < data.size(); at += kBlock) {
      const auto block = data.subspan(at, std::min(kBlock, data.size() - at));
      if (rank_ != from)
        if (Result<void> got = receive(block); !got) return got;
      if (!last) sender_.data(block);
    }
    return finish();
  }

  Result<void> reduce(Elements values, ReduceOp op) override {
    if (Result<void> alive = standing(); !alive) return alive;
    const auto part = [&](int index) {
      const Part range = part_of(values.count, size_, turn(index));
      return values.as_bytes().subspan(
          static_cast<std::size_t>(range.begin) * size_of(values.type),
          static_cast<std::size_t>(range.size()) * size_of(values.type));
    };
    for (int step = 0; step + 1 < size_; ++step) {
      sender_.data(part(rank_ - step));
      if (Result<void> got = receive_into(part(rank_ - step - 1), values.type, op); !got)
        return got;
    }
    // What comes back overwrites what was sent.
    if (Result<void> sent = finish(); !sent) return sent;
    for (int step = 0; step + 1 < size_; ++step) {
      sender_.data(part(rank_ + 1 - step));
      if (Result<void> got = receive(part(rank_ - step)); !got) return got;
    }
    return finish();
  }

  void leave(std::string_view reason) override {
    fail_ring("Rank " + std::to_string(rank_) + " left" +
              (reason.empty() ? "." : ": " + std::string(reason)));
  }

 private:
  int turn(int rank) const { return (rank % size_ + size_) % size_; }

  // The first failure stays and is told to the next rank, once.
  Result<void> fail_ring(const std::string& reason) {
    if (failure_.empty()) {
      failure_ = reason.substr(0, kLongestReason);
      sender_.abandon();
      sender_.error(failure_);
    }
    return fail(ErrorCode::kUnavailable, failure_);
  }

  Result<void> finish() {
    if (Result<void> sent = sender_.flush(); !sent)
      return fail_ring("The link to rank " + std::to_string(turn(rank_ + 1)) +
                       " failed: " + sent.error().message);
    return {};
  }

  Result<void> raw(std::span<std::uint8_t> bytes) {
    if (bytes.empty()) return {};
    Result<void> got = previous_->receive(bytes, timeout_);
    if (!got)
      return fail_ring("The link from rank " + std::to_string(turn(rank_ - 1)) +
                       " failed: " + got.error().message);
    return got;
  }

  // A ring that failed sends nothing more: the sender would hold on to memory of a call that ended.
  Result<void> standing() const {
    if (!failure_.empty()) return fail(ErrorCode::kUnavailable, failure_);
    return {};
  }

  // The start of a frame of `bytes` bytes of data.
  Result<void> expect(std::size_t bytes) {
    if (Result<void> alive = standing(); !alive) return alive;
    std::array<std::uint8_t, sizeof(Frame)> start;
    if (Result<void> got = raw(start); !got) return got;
    Frame frame;
    std::memcpy(&frame, start.data(), sizeof(frame));
    if (frame.kind == kError && frame.bytes <= kLongestReason) {
      std::vector<std::uint8_t> reason(frame.bytes);
      if (Result<void> got = raw(reason); !got) return got;
      return fail_ring({reason.begin(), reason.end()});
    }
    if (frame.kind != kData || frame.bytes != bytes)
      return fail_ring("Rank " + std::to_string(turn(rank_ - 1)) + " sent a frame of " +
                       std::to_string(frame.bytes) + " bytes where " + std::to_string(bytes) +
                       " were expected.");
    return {};
  }

  Result<void> receive(std::span<std::uint8_t> bytes) {
    Result<void> started = expect(bytes.size());
    return started ? raw(bytes) : started;
  }

  Result<void> receive_into(std::span<std::uint8_t> bytes, ElementType type, ReduceOp op) {
    if (Result<void> started = expect(bytes.size()); !started) return started;
    for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
      const auto own = bytes.subspan(at, std::min(kBlock, bytes.size() - at));
      if (Result<void> got = raw(std::span(block_).first(own.size())); !got) return got;
      const std::array<const void*, 2> sources = {block_.data(), own.data()};
      const std::array<void*, 1> destinations = {own.data()};
      learners::reduce(type, op, static_cast<std::int64_t>(own.size() / size_of(type)), sources,
                       destinations);
    }
    return {};
  }

  int rank_, size_;
  std::unique_ptr<ByteReceiver> previous_;
  std::chrono::milliseconds timeout_;
  std::vector<std::uint8_t> block_;
  std::string failure_;
  Sender sender_;
};

}  // namespace

std::unique_ptr<Exchange> make_ring_exchange(int rank, int size, std::unique_ptr<ByteSender> next,
                                             std::unique_ptr<ByteReceiver> previous,
                                             std::chrono::milliseconds timeout) {
  return std::make_unique<Ring>(rank, size, std::move(next), std::move(previous), timeout);
}

}  // namespace troupe::learners
