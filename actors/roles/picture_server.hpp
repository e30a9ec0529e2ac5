// The learner's side of the way that pictures come by: gives data actors leases of a feed and takes
// what they deliver. Belongs to one thread; the feed is shared with the learner's, which may put
// another one in its place.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "actors/messages/data_protocol.hpp"
#include "actors/runtime/channel.hpp"
#include "learners/data/picture_feed.hpp"

namespace troupe::actors {

class PictureServer {
 public:
  // `signature`: picture_signature of the feeds to come.
  static Result<std::unique_ptr<PictureServer>> open(replay::Signature signature,
                                                     const std::string& endpoint);
  std::string endpoint() const { return channel_->endpoint(); }
  // What it serves from here on; null: nothing, who asks waits. Whoever has asked before asks
  // again. Any thread.
  void set_feed(std::shared_ptr<learners::data::PictureFeed> feed);

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
    bool stands = true;  // of the present feed
    ChannelMessage answer{};
  };

  PictureServer(replay::Signature signature, std::unique_ptr<ChannelServer> channel);
  void take(const ChannelServer::Received& received);
  void take_request(const ChannelServer::Received& received);
  void take_pictures(const ChannelServer::Received& received);
  void give_leases();

  replay::Signature signature_;
  std::mutex mutex_;
  std::shared_ptr<learners::data::PictureFeed> next_feed_;  // under the mutex
  std::shared_ptr<learners::data::PictureFeed> feed_;       // of the call to serve()
  std::unique_ptr<ChannelServer> channel_;
  std::map<std::uint32_t, Request> requests_;  // by index of the data actor
  std::atomic<std::uint64_t> corrupt_{0};
};

}  // namespace troupe::actors
