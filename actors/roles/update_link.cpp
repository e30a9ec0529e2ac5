// Implements the learner's end of the way to parameter servers.
#include "actors/roles/update_link.hpp"

#include <thread>

#include "actors/config/memory.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLookAgain{20};  // whether the server is still there
constexpr milliseconds kSendAgain{1};   // while a connection is made
// Of messages beside the parameters themselves: heads of arrays, what workers keep for each other.
constexpr std::size_t kSlackBytes = std::size_t{4} << 20;
// An asker waits for one answer, and leaves a few behind when a server is slow.
constexpr int kMostQueued = 32;

}  // namespace

std::filesystem::path server_snapshots(const std::filesystem::path& run_directory) {
  return run_directory / "parameter_servers";
}

std::string snapshot_name(std::uint32_t server) {
  return "parameter_server-" + std::to_string(server) + ".snapshot";
}

ChannelLimits update_limits(const RunOptions& options, const EnvSpec& spec) {
  const auto parameters =
      static_cast<std::size_t>(parameter_count(options.learners.learner.d4pg, spec));
  return {.max_message_bytes = parameters * sizeof(float) + kSlackBytes,
          .high_water_mark = kMostQueued};
}

ChannelMessage update_message(DataKind kind, std::uint64_t number,
                              std::span<const std::uint8_t> bytes) {
  return words_message<1>(kind, {number}, bytes);
}

std::optional<UpdateMessage> read_update_message(const ChannelMessage& message) {
  const auto words = words_of<1>(message);
  const bool known = message.kind == static_cast<std::uint8_t>(DataKind::kUpdate) ||
                     message.kind == static_cast<std::uint8_t>(DataKind::kUpdateAnswer);
  if (!known || !words) return std::nullopt;
  return UpdateMessage{(*words)[0], message.payload->subspan(sizeof(std::uint64_t))};
}

void UpdateLink::set_endpoint(const std::string& endpoint) {
  const std::lock_guard lock(mutex_);
  endpoint_ = endpoint;
}

std::string UpdateLink::endpoint() const {
  const std::lock_guard lock(mutex_);
  return endpoint_;
}

Result<std::vector<std::uint8_t>> UpdateLink::ask(std::span<const std::uint8_t> request,
                                                  milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  const std::string wanted = endpoint();
  if (wanted != connected_) {
    channel_.reset();
    connected_.clear();
  }
  if (wanted.empty()) return fail(ErrorCode::kUnavailable, "it is not there now");
  if (!channel_) {
    // Another name each time: what was sent to the last one is not for this one.
    auto channel =
        open_channel_client(wanted, peer_name_ + "." + std::to_string(++connections_), limits_);
    if (!channel) return tl::unexpected(channel.error());
    channel_ = std::move(*channel);
    connected_ = wanted;
  }
  const std::uint64_t number = ++number_;
  const ChannelMessage message = update_message(DataKind::kUpdate, number, request);
  bool sent = false;
  while (Clock::now() < deadline) {
    if (endpoint() != wanted) return fail(ErrorCode::kUnavailable, "it has gone");
    if (!sent && !(sent = channel_->send(message).has_value())) {
      std::this_thread::sleep_for(kSendAgain);
      continue;
    }
    const auto answer = channel_->receive(kLookAgain);
    const auto read = answer ? read_update_message(*answer) : std::nullopt;
    if (read && read->number == number)
      return std::vector<std::uint8_t>(read->bytes.begin(), read->bytes.end());
  }
  return fail(ErrorCode::kTimeout, "no answer within " + std::to_string(timeout.count()) + " ms");
}

}  // namespace troupe::actors
