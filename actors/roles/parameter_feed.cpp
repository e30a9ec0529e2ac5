// Implements parameter distribution.
#include "actors/roles/parameter_feed.hpp"

#include "actors/messages/data_protocol.hpp"

namespace troupe::actors {
namespace {

// A request may die with a connection, so it is repeated; the server keeps one per peer.
constexpr std::chrono::milliseconds kAskAgain{1000};

}  // namespace

Result<std::unique_ptr<ParameterServer>> ParameterServer::open(const std::string& endpoint) {
  auto channel = open_channel_server(endpoint);
  if (!channel) return tl::unexpected(channel.error());
  return std::unique_ptr<ParameterServer>(new ParameterServer(std::move(*channel)));
}

void ParameterServer::serve(std::chrono::milliseconds timeout) {
  while (auto received = channel_->receive(timeout)) {
    timeout = std::chrono::milliseconds{0};
    if (received->message.kind != static_cast<std::uint8_t>(DataKind::kWantParameters)) continue;
    const auto words = words_of<2>(received->message);
    if (words)
      waiting_[received->peer] = Held{static_cast<std::uint32_t>((*words)[0]), (*words)[1]};
  }
  answer();
}

void ParameterServer::publish(models::ParameterSetPtr set) {
  newest_ = std::move(set);
  encoded_.reset();
  answer();
}

void ParameterServer::answer() {
  if (!newest_) return;
  const Held now{newest_->learner_epoch, newest_->version + 1};  // + 1: "0, 0" means none
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    if (waiting->second >= now) {
      ++waiting;
      continue;
    }
    if (!encoded_) encoded_ = std::make_shared<const Bytes>(models::encode(*newest_));
    // A peer that is gone asks again when it comes back.
    (void)channel_->send(waiting->first,
                         {static_cast<std::uint8_t>(DataKind::kParameters), encoded_});
    waiting = waiting_.erase(waiting);
  }
}

Result<std::unique_ptr<ParameterSubscriber>> ParameterSubscriber::open(
    const std::string& endpoint, const std::string& peer_name) {
  auto channel = open_channel_client(endpoint, peer_name);
  if (!channel) return tl::unexpected(channel.error());
  return std::unique_ptr<ParameterSubscriber>(new ParameterSubscriber(std::move(*channel)));
}

void ParameterSubscriber::ask() {
  const auto now = std::chrono::steady_clock::now();
  if (asked_ && now - asked_at_ < kAskAgain) return;
  const std::array<std::uint64_t, 2> held =
      newest_ ? std::array<std::uint64_t, 2>{newest_->learner_epoch, newest_->version + 1}
              : std::array<std::uint64_t, 2>{0, 0};
  asked_ = channel_->send(words_message(DataKind::kWantParameters, held)).has_value();
  asked_at_ = now;
}

bool ParameterSubscriber::poll(std::chrono::milliseconds timeout) {
  bool changed = false;
  ask();
  while (auto message = channel_->receive(timeout)) {
    timeout = std::chrono::milliseconds{0};
    if (message->kind != static_cast<std::uint8_t>(DataKind::kParameters) || !message->payload)
      continue;
    asked_ = false;
    auto set = models::decode_parameter_set(*message->payload);
    if (!set) {
      ++corrupt_;
      continue;
    }
    if (!newest_ || set->newer_than(*newest_)) {
      newest_ = std::make_shared<const models::ParameterSet>(std::move(*set));
      changed = true;
    }
  }
  if (changed) ask();
  return changed;
}

}  // namespace troupe::actors
