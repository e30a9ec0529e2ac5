// The way of learners' updates to parameter servers over data channels: numbered requests and their
// answers, directly between the two.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/config/run_options.hpp"
#include "actors/messages/data_protocol.hpp"
#include "actors/runtime/channel.hpp"
#include "envs/spec/spec.hpp"
#include "learners/collectives/request_link.hpp"

namespace troupe::actors {

// Where parameter servers keep the snapshots of this session; and the file of one, there and in
// checkpoints.
std::filesystem::path server_snapshots(const std::filesystem::path& run_directory);
std::string snapshot_name(std::uint32_t server);

// No message is larger than all parameters and their heads; requests are answered one by one.
ChannelLimits update_limits(const RunOptions& options, const EnvSpec& spec);

// A request or answer; its bytes are those of learners/parameter_servers/wire.hpp.
struct UpdateMessage {
  std::uint64_t number = 0;
  std::span<const std::uint8_t> bytes;  // of the message that it was read from
};
ChannelMessage update_message(DataKind kind, std::uint64_t number,
                              std::span<const std::uint8_t> bytes);
// nullopt: it is none.
std::optional<UpdateMessage> read_update_message(const ChannelMessage& message);

// One learner's way to one parameter server, wherever that is now. ask() belongs to one thread at a
// time; it ends early, kUnavailable, when the server goes.
class UpdateLink final : public learners::RequestLink {
 public:
  // `peer_name` of no other link.
  UpdateLink(std::string peer_name, const ChannelLimits& limits)
      : peer_name_(std::move(peer_name)), limits_(limits) {}

  // Any thread. Empty: the server is not there now.
  void set_endpoint(const std::string& endpoint);
  Result<std::vector<std::uint8_t>> ask(std::span<const std::uint8_t> request,
                                        std::chrono::milliseconds timeout) override;

 private:
  std::string endpoint() const;

  const std::string peer_name_;
  const ChannelLimits limits_;
  mutable std::mutex mutex_;
  std::string endpoint_;
  std::string connected_;  // where channel_ leads
  std::unique_ptr<ChannelClient> channel_;
  std::uint64_t number_ = 0, connections_ = 0;
};

}  // namespace troupe::actors
