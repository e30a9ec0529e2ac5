// Both ends of parameter distribution: the learner's side sends each subscriber the newest set once
// it asked (credit 1), the subscriber's side keeps the newest set it has received. Each object
// belongs to one thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "actors/runtime/channel.hpp"
#include "models/inference/parameter_set.hpp"

namespace troupe::actors {

class ParameterServer {
 public:
  static Result<std::unique_ptr<ParameterServer>> open(const std::string& endpoint);
  std::string endpoint() const { return channel_->endpoint(); }

  // Takes requests that came in and answers those that can be answered; waits at most `timeout` for
  // one.
  void serve(std::chrono::milliseconds timeout);
  // Newer than before; goes out to everyone who waits for one.
  void publish(models::ParameterSetPtr set);
  const models::ParameterSetPtr& newest() const { return newest_; }

 private:
  using Held = std::pair<std::uint32_t, std::uint64_t>;  // epoch, version
  explicit ParameterServer(std::unique_ptr<ChannelServer> channel) : channel_(std::move(channel)) {}
  void answer();

  std::unique_ptr<ChannelServer> channel_;
  models::ParameterSetPtr newest_;
  std::shared_ptr<const Bytes> encoded_;  // of newest_, made on first use
  std::map<std::string, Held> waiting_;
};

class ParameterSubscriber {
 public:
  static Result<std::unique_ptr<ParameterSubscriber>> open(const std::string& endpoint,
                                                           const std::string& peer_name);
  // Receives what came in, waits at most `timeout` for something. True: newest() changed.
  bool poll(std::chrono::milliseconds timeout);
  // Null before the first set.
  const models::ParameterSetPtr& newest() const { return newest_; }
  // A set kept from an earlier connection is not forgotten.
  void keep(models::ParameterSetPtr set) { newest_ = std::move(set); }
  std::uint64_t corrupt() const { return corrupt_; }

 private:
  explicit ParameterSubscriber(std::unique_ptr<ChannelClient> channel)
      : channel_(std::move(channel)) {}
  void ask();

  std::unique_ptr<ChannelClient> channel_;
  models::ParameterSetPtr newest_;
  bool asked_ = false;
  std::chrono::steady_clock::time_point asked_at_{};
  std::uint64_t corrupt_ = 0;
};

}  // namespace troupe::actors
