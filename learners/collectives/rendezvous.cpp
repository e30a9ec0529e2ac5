// Implements table and client. A request is verb, key, two values; an answer is 0 and a value, or 1
// and the sentence of an error. Nothing is allocated before its length was checked.
#include "learners/collectives/rendezvous.hpp"

#include <algorithm>
#include <charconv>
#include <thread>

#include "models/inference/bytes.hpp"

namespace troupe::learners {
namespace {

using Bytes = std::vector<std::uint8_t>;

enum Verb : std::uint8_t { kSet, kFind, kAdd, kCompareSet, kErase, kCount };

constexpr std::size_t kLongestKey = 1024;
constexpr std::chrono::milliseconds kFirstPause(1), kLongestPause(20);

Bytes bytes_of(std::int64_t number) {
  const std::string text = std::to_string(number);
  return {text.begin(), text.end()};
}

std::optional<std::int64_t> number_of(const Bytes& bytes) {
  std::int64_t number = 0;
  const auto* first = reinterpret_cast<const char*>(bytes.data());
  const auto [end, error] = std::from_chars(first, first + bytes.size(), number);
  if (error != std::errc() || end != first + bytes.size()) return std::nullopt;
  return number;
}

Bytes answer(std::uint8_t status, std::span<const std::uint8_t> value) {
  models::ByteWriter writer;
  writer.put(status);
  writer.put_values(value);
  return std::move(writer.bytes());
}
Bytes good(std::span<const std::uint8_t> value = {}) { return answer(0, value); }
Bytes bad(const std::string& why) {
  return answer(1, {reinterpret_cast<const std::uint8_t*>(why.data()), why.size()});
}

struct Request {
  std::uint8_t verb = 0;
  std::string key;
  Bytes first, second;
};

bool read(std::span<const std::uint8_t> bytes, Request& request) {
  models::ByteReader reader(bytes);
  std::uint32_t first = 0, second = 0;
  return reader.take(request.verb) && reader.take(request.key) && reader.take(first) &&
         reader.take_values(first, request.first) && reader.take(second) &&
         reader.take_values(second, request.second) && reader.complete() &&
         request.verb <= kCount && request.key.size() <= kLongestKey;
}

class LocalLink final : public RequestLink {
 public:
  explicit LocalLink(std::shared_ptr<RendezvousTable> table) : table_(std::move(table)) {}
  Result<Bytes> ask(std::span<const std::uint8_t> request, std::chrono::milliseconds) override {
    return table_->handle(request);
  }

 private:
  std::shared_ptr<RendezvousTable> table_;
};

}  // namespace

Bytes RendezvousTable::handle(std::span<const std::uint8_t> bytes) {
  Request request;
  if (!read(bytes, request)) return bad("A request to the rendezvous cannot be read.");
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(request.key);
  const bool there = found != values_.end();
  const auto store = [&](Bytes value) {
    const std::size_t old = there ? request.key.size() + found->second.size() : 0;
    const std::size_t size = bytes_ - old + request.key.size() + value.size();
    if (size > most_bytes_)
      return bad("The rendezvous is full: '" + request.key + "' would make it " +
                 std::to_string(size) + " bytes, of " + std::to_string(most_bytes_) + ".");
    bytes_ = size;
    Bytes kept = good(value);
    values_[request.key] = std::move(value);
    return kept;
  };
  switch (request.verb) {
    case kSet:
      return store(request.first);
    case kFind: {
      // A first byte tells a value from none.
      return there ? good(answer(1, found->second)) : good(Bytes{0});
    }
    case kAdd: {
      const std::optional<std::int64_t> amount = number_of(request.first);
      const std::optional<std::int64_t> now = there ? number_of(found->second) : 0;
      if (!amount || !now) return bad("'" + request.key + "' is not a number to add to.");
      std::int64_t sum = 0;
      if (__builtin_add_overflow(*now, *amount, &sum))
        return bad("'" + request.key + "' would count beyond 64 bits.");
      return store(bytes_of(sum));
    }
    case kCompareSet: {
      const bool equal = there ? found->second == request.first : request.first.empty();
      if (equal) return store(request.second);
      return good(there ? found->second : request.first);
    }
    case kErase:
      if (there) {
        bytes_ -= request.key.size() + found->second.size();
        values_.erase(found);
      }
      return good(Bytes{there});
    default: {
      std::int64_t count = 0;
      for (auto it = values_.lower_bound(request.key);
           it != values_.end() && it->first.starts_with(request.key); ++it)
        ++count;
      return good(bytes_of(count));
    }
  }
}

std::size_t RendezvousTable::keys() const {
  const std::lock_guard lock(mutex_);
  return values_.size();
}

std::unique_ptr<RequestLink> make_local_link(std::shared_ptr<RendezvousTable> table) {
  return std::make_unique<LocalLink>(std::move(table));
}

RendezvousClient::RendezvousClient(std::shared_ptr<RequestLink> link, std::string prefix,
                                   std::chrono::milliseconds timeout)
    : link_(std::move(link)), prefix_(std::move(prefix)), timeout_(timeout) {}

Result<Bytes> RendezvousClient::ask(std::uint8_t verb, const std::string& key, const Bytes& first,
                                    const Bytes& second) {
  models::ByteWriter writer;
  writer.put(verb);
  writer.put(std::string_view(prefix_ + key));
  for (const Bytes* value : {&first, &second}) {
    writer.put(static_cast<std::uint32_t>(value->size()));
    writer.put_values(std::span(*value));
  }
  const std::lock_guard lock(mutex_);
  Result<Bytes> reply = link_->ask(writer.bytes(), timeout_);
  if (!reply) return reply;
  if (reply->empty()) return fail(ErrorCode::kCorrupt, "The rendezvous gave an empty answer.");
  const bool failed = reply->front() != 0;
  reply->erase(reply->begin());
  if (failed) return fail(ErrorCode::kInvalidArgument, std::string(reply->begin(), reply->end()));
  return reply;
}

Result<void> RendezvousClient::set(const std::string& key, const Bytes& value) {
  return ask(kSet, key, value).map([](const Bytes&) {});
}

Result<std::optional<Bytes>> RendezvousClient::find(const std::string& key) {
  return ask(kFind, key).map([](Bytes value) -> std::optional<Bytes> {
    if (value.empty() || value.front() == 0) return std::nullopt;
    value.erase(value.begin());
    return value;
  });
}

Result<Bytes> RendezvousClient::get(const std::string& key, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (std::chrono::milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    Result<std::optional<Bytes>> found = find(key);
    if (!found) return tl::unexpected(found.error());
    if (*found) return **std::move(found);
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(ErrorCode::kTimeout, "Nobody set '" + prefix_ + key +
                                           "' in the rendezvous within " +
                                           std::to_string(timeout.count()) + " ms.");
    std::this_thread::sleep_for(pause);
  }
}

Result<std::int64_t> RendezvousClient::add(const std::string& key, std::int64_t amount) {
  const Result<Bytes> sum = ask(kAdd, key, bytes_of(amount));
  if (!sum) return tl::unexpected(sum.error());
  return number_of(*sum).value_or(0);
}

Result<Bytes> RendezvousClient::compare_set(const std::string& key, const Bytes& expected,
                                            const Bytes& wanted) {
  return ask(kCompareSet, key, expected, wanted);
}

Result<bool> RendezvousClient::erase(const std::string& key) {
  return ask(kErase, key).map([](const Bytes& value) { return !value.empty() && value[0] != 0; });
}

Result<std::int64_t> RendezvousClient::count() {
  const Result<Bytes> count = ask(kCount, "");
  if (!count) return tl::unexpected(count.error());
  return number_of(*count).value_or(0);
}

}  // namespace troupe::learners
