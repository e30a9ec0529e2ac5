// The learner's side of the way that pictures come by: gives data actors leases of a feed and takes
// what they deliver. Belongs to one thread; the feed is shared with the learner's.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "actors/messages/data_protocol.hpp"
#include "actors/runtime/channel.hpp"
#include "learners/data/picture_feed.hpp"

namespace troupe::actors {

class PictureServer {
 public:
  static Result<std::unique_ptr<PictureServer>> open(
      std::shared_ptr<learners::data::PictureFeed> feed, const std::string& endpoint);
  std::string endpoint() const { return channel_->endpoint(); }

  // Handles what came in and gives the leases that there is room for now; waits at most `timeout`
  // for something new.
  void serve(std::chrono::milliseconds timeout);
  // Messages that could not be read, and deliveries that were refused. Any thread.
  std::uint64_t corrupt() const { return corrupt_; }

 private:
  // One of each data actor: asked again under the same number, it is answered the same. An earlier
  // incarnation's gives way.
  struct Request {
    std::string peer;
    learners::data::DataActor actor;
    std::uint64_t serial = 0;
    bool answered = false;
    ChannelMessage answer;
  };

  PictureServer(std::shared_ptr<learners::data::PictureFeed> feed,
                std::unique_ptr<ChannelServer> channel);
  void take(const ChannelServer::Received& received);
  void take_request(const ChannelServer::Received& received);
  void take_pictures(const ChannelServer::Received& received);
  void give_leases();

  std::shared_ptr<learners::data::PictureFeed> feed_;
  replay::Signature signature_;
  std::unique_ptr<ChannelServer> channel_;
  std::map<std::uint32_t, Request> requests_;  // by index of the data actor
  std::atomic<std::uint64_t> corrupt_{0};
};

}  // namespace troupe::actors
