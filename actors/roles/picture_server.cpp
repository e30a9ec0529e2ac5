// Implements the giving and taking.
#include "actors/roles/picture_server.hpp"

#include "replay/codec.hpp"

namespace troupe::actors {

using std::chrono::milliseconds;
namespace data = learners::data;

Result<std::unique_ptr<PictureServer>> PictureServer::open(replay::Signature signature,
                                                           const std::string& endpoint) {
  auto channel = open_channel_server(endpoint);
  if (!channel) return tl::unexpected(channel.error());
  return std::unique_ptr<PictureServer>(
      new PictureServer(std::move(signature), std::move(*channel)));
}

PictureServer::PictureServer(replay::Signature signature, std::unique_ptr<ChannelServer> channel)
    : signature_(std::move(signature)), channel_(std::move(channel)) {}

void PictureServer::set_feed(std::shared_ptr<data::PictureFeed> feed) {
  const std::lock_guard lock(mutex_);
  next_feed_ = std::move(feed);
}

void PictureServer::serve(milliseconds timeout) {
  {
    const std::lock_guard lock(mutex_);
    // Whoever asked the feed before may have turned to another learner since, and would leave the
    // lease of an answer undelivered for good; who still waits asks again.
    for (auto& [index, request] : requests_) request.stands &= feed_ == next_feed_;
    feed_ = next_feed_;
  }
  while (const auto received = channel_->receive(timeout)) {
    timeout = milliseconds{0};
    take(*received);
  }
  give_leases();
}

void PictureServer::take(const ChannelServer::Received& received) {
  switch (static_cast<DataKind>(received.message.kind)) {
    case DataKind::kWantLease:
      return take_request(received);
    case DataKind::kSegment:
      return take_pictures(received);
    default:
      ++corrupt_;
  }
}

void PictureServer::take_request(const ChannelServer::Received& received) {
  const auto words = words_of<4>(received.message);
  if (!words) {
    ++corrupt_;
    return;
  }
  const auto [index, incarnation, serial, hash] = *words;
  const data::DataActor actor{static_cast<std::uint32_t>(index),
                              static_cast<std::uint32_t>(incarnation)};
  if (hash != signature_.spec_hash) {
    static constexpr std::string_view kText =
        "its data set is another one than the learner's, or differently cut";
    (void)channel_->send(
        received.peer,
        words_message<3>(DataKind::kRefused, {index, incarnation, serial},
                         {reinterpret_cast<const std::uint8_t*>(kText.data()), kText.size()}));
    return;
  }
  Request& request = requests_[actor.index];
  if (actor.incarnation < request.actor.incarnation) return;
  if (actor == request.actor && serial < request.serial) return;  // late: it has asked again since
  if (request.answered && request.stands && request.actor == actor && request.serial == serial)
    (void)channel_->send(received.peer, request.answer);
  else
    request = {received.peer, actor, serial};
}

void PictureServer::take_pictures(const ChannelServer::Received& received) {
  const auto chunk = received.message.payload
                         ? replay::decode(*received.message.payload, signature_)
                         : fail(ErrorCode::kCorrupt, "a message without pictures");
  if (!chunk) {  // it comes again
    ++corrupt_;
    return;
  }
  const replay::ChunkHeader& header = (*chunk)->header;
  const std::array<std::uint64_t, 3> key{header.worker, header.incarnation, header.sequence};
  // Without a feed nobody waits for it any more.
  const auto taken = feed_ ? feed_->take(**chunk) : Result<bool>(false);
  if (taken) {
    (void)channel_->send(received.peer, words_message<3>(DataKind::kAck, key));
    return;
  }
  ++corrupt_;
  const std::string& text = taken.error().message;
  (void)channel_->send(
      received.peer,
      words_message<3>(DataKind::kRefused, key,
                       {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
}

void PictureServer::give_leases() {
  if (!feed_) return;
  for (auto& [index, request] : requests_) {
    if (request.answered || !request.stands) continue;
    const auto lease = feed_->lease(request.actor);
    if (!lease) continue;
    request.answered = true;
    request.answer = words_message<6>(
        DataKind::kLease,
        {request.serial, feed_->options().learner_epoch, lease->id, lease->epoch,
         static_cast<std::uint64_t>(lease->begin), static_cast<std::uint64_t>(lease->end)});
    (void)channel_->send(request.peer,
                         request.answer);  // lost with the connection, it is asked for again
  }
}

}  // namespace troupe::actors
