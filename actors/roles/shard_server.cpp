// Implements the shard's side of the data channels.
#include "actors/roles/shard_server.hpp"

#include <algorithm>
#include <charconv>

#include "actors/messages/data_protocol.hpp"
#include "actors/roles/batch_message.hpp"
#include "actors/roles/global_limiter.hpp"
#include "replay/codec.hpp"

namespace troupe::actors {

using std::chrono::milliseconds;

namespace {

// How soon a chunk that the limiter held back is offered again.
constexpr milliseconds kRetry{1};
// Between two messages about what this shard has.
constexpr std::chrono::microseconds kTellEvery{200};
// It is told again even if nothing changed, because a message may have died with a connection.
constexpr milliseconds kTellAgain{500};

// Worker, incarnation and sequence of an encoded chunk, at their fixed place in replay/codec.hpp's
// layout, for answering one that cannot be decoded.
std::optional<std::array<std::uint64_t, 3>> key_of(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kOffset = 24;
  std::uint32_t worker = 0, incarnation = 0;
  std::uint64_t sequence = 0;
  if (bytes.size() < kOffset + 16) return std::nullopt;
  std::memcpy(&worker, bytes.data() + kOffset, sizeof worker);
  std::memcpy(&incarnation, bytes.data() + kOffset + 4, sizeof incarnation);
  std::memcpy(&sequence, bytes.data() + kOffset + 8, sizeof sequence);
  return std::array<std::uint64_t, 3>{worker, incarnation, sequence};
}

// Of "learner-0.3": 3; 0 where there is none.
std::uint64_t incarnation_of(const std::string& peer) {
  std::uint64_t number = 0;
  const std::size_t dot = peer.rfind('.');
  if (dot != std::string::npos)
    std::from_chars(peer.data() + dot + 1, peer.data() + peer.size(), number);
  return number;
}

}  // namespace

Result<std::unique_ptr<ShardServer>> ShardServer::open(std::shared_ptr<replay::Table> table,
                                                       const std::string& data_endpoint,
                                                       const std::string& sample_endpoint) {
  auto data = open_channel_server(data_endpoint);
  if (!data) return tl::unexpected(data.error());
  std::unique_ptr<ChannelServer> samples;
  if (!sample_endpoint.empty()) {
    auto opened = open_channel_server(sample_endpoint);
    if (!opened) return tl::unexpected(opened.error());
    samples = std::move(*opened);
  }
  return std::unique_ptr<ShardServer>(
      new ShardServer(std::move(table), std::move(*data), std::move(samples)));
}

ShardServer::ShardServer(std::shared_ptr<replay::Table> table, std::unique_ptr<ChannelServer> data,
                         std::unique_ptr<ChannelServer> samples)
    : table_(std::move(table)),
      data_(std::move(data)),
      samples_(std::move(samples)),
      restored_(table_->statistics().inserted_items),
      inserted_(table_->statistics().inserted_steps),
      quiet_since_(std::chrono::steady_clock::now().time_since_epoch().count()) {}

milliseconds ShardServer::quiet_for() const {
  const auto since = quiet_since_.load();
  if (since == 0) return milliseconds{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<milliseconds>(now - std::chrono::steady_clock::duration(since));
}

void ShardServer::serve(milliseconds timeout) {
  if (samples_) return serve_samplers();
  if (!pending_.empty()) timeout = std::min(timeout, kRetry);
  while (auto received = data_->receive(timeout)) {
    timeout = milliseconds{0};
    take_chunk(*received);
  }
  insert_pending();
}

// Two channels, and what one brings lets the other move.
void ShardServer::serve_samplers() {
  bool any = false;
  while (auto received = data_->receive(milliseconds{0})) {
    any = true;
    take_chunk(*received);
  }
  while (auto received = samples_->receive(milliseconds{0})) {
    any = true;
    take_from_sampler(*received);
  }
  insert_pending();
  answer_requests();
  tell_samplers();
  if (any)
    nap_.disturb();
  else
    nap_.take();
}

void ShardServer::take_chunk(const ChannelServer::Received& received) {
  if (received.message.kind != static_cast<std::uint8_t>(DataKind::kSegment) ||
      !received.message.payload) {
    ++corrupt_;
    return;
  }
  auto chunk = replay::decode(*received.message.payload, table_->signature());
  if (!chunk) {
    ++corrupt_;
    if (const auto key = key_of(*received.message.payload))
      refuse(received.peer, *key, chunk.error().message);
    return;
  }
  // A resent chunk may still wait here: its answer follows when it is in.
  const replay::ChunkHeader& header = (*chunk)->header;
  const auto same = [&](const Pending& pending) {
    const replay::ChunkHeader& other = pending.chunk->header;
    return other.worker == header.worker && other.incarnation == header.incarnation &&
           other.sequence == header.sequence;
  };
  if (const auto waiting = std::find_if(pending_.begin(), pending_.end(), same);
      waiting != pending_.end()) {
    waiting->peer = received.peer;
    return;
  }
  pending_.push_back({received.peer, std::move(*chunk)});
  quiet_since_ = 0;
}

// In order of arrival, so that an episode's steps are never shuffled.
void ShardServer::insert_pending() {
  while (!pending_.empty()) {
    const Pending& first = pending_.front();
    if (inserted_ >= limit_) return;
    const replay::InsertOutcome outcome = table_->try_insert(first.chunk);
    if (outcome.kind == replay::InsertOutcome::Kind::kWouldBlock) return;
    const replay::ChunkHeader& header = first.chunk->header;
    if (outcome.kind == replay::InsertOutcome::Kind::kAccepted) {
      inserted_ += header.steps;
      if (mark_) mark_->set(inserted_);
    }
    if (outcome.kind == replay::InsertOutcome::Kind::kRefused)
      refuse(first.peer, {header.worker, header.incarnation, header.sequence},
             outcome.error.message);
    else
      acknowledge(first.peer, header);
    pending_.pop_front();
    if (pending_.empty())
      quiet_since_ = std::chrono::steady_clock::now().time_since_epoch().count();
  }
}

// A peer that is gone sends again when it comes back, and is answered then.
void ShardServer::acknowledge(const std::string& peer, const replay::ChunkHeader& header) {
  (void)data_->send(
      peer, words_message<3>(DataKind::kAck, {header.worker, header.incarnation, header.sequence}));
}

void ShardServer::refuse(const std::string& peer, const std::array<std::uint64_t, 3>& key,
                         const std::string& why) {
  const std::span<const std::uint8_t> text(reinterpret_cast<const std::uint8_t*>(why.data()),
                                           why.size());
  (void)data_->send(peer, words_message(DataKind::kRefused, key, text));
}

void ShardServer::take_from_sampler(const ChannelServer::Received& received) {
  constexpr std::uint64_t kMostItems = 1U << 24;
  const ChannelMessage& message = received.message;
  if (const auto grant = decode_grant(message)) {
    take_grant(received.peer, *grant);
  } else if (const auto priorities = decode_priorities(message)) {
    // The table counts those that come too late.
    (void)table_->update_priorities(priorities->keys, priorities->values);
  } else if (const auto words = words_of<2>(message);
             message.kind == static_cast<std::uint8_t>(DataKind::kWantBatch) && words &&
             (*words)[1] > 0 && (*words)[1] <= kMostItems) {
    take_request(received.peer, (*words)[0], (*words)[1]);
  } else {
    ++corrupt_;
  }
}

// A sampler that came back under the same name starts anew: its predecessor's leave is void, and
// what a predecessor still says is ignored. Who only says hello, a learner that follows another,
// allows and forbids nothing.
void ShardServer::take_grant(const std::string& peer, const Grant& grant) {
  Sampler& sampler = samplers_[peer.substr(0, peer.rfind('.'))];
  if (incarnation_of(peer) < incarnation_of(sampler.peer)) return;
  if (sampler.peer != peer) sampler = Sampler{.peer = peer, .grant = {}, .told = {}, .told_at = {}};
  if (grant.serial == 0) sampler.told.reset();  // it says hello: it knows nothing
  if (grant.epoch == table_->options().shard_epoch && grant.serial > sampler.grant.serial)
    sampler.grant = grant;
  if (sampler.grant.serial > 0) lead_ = std::max(lead_, sampler.grant.lead);
  std::optional<std::uint64_t> allowed;
  for (const auto& [name, other] : samplers_)
    if (other.grant.serial > 0 && other.grant.lead == lead_)
      allowed = std::min(allowed.value_or(GlobalLimiter::kUnlimited), other.grant.allowed);
  table_->allow_inserts(allowed.value_or(0));
}

void ShardServer::take_request(const std::string& peer, std::uint64_t batch_id,
                               std::uint64_t items) {
  for (const Wanted& wanted : wanted_)
    if (wanted.peer == peer && wanted.batch_id == batch_id) return;
  wanted_.push_back({peer, batch_id, items});
}

void ShardServer::answer_requests() {
  while (!wanted_.empty()) {
    const Wanted& first = wanted_.front();
    const auto items = table_->try_sample(first.items);
    if (!items) {
      (void)samples_->send(first.peer, encode_no_batch(first.batch_id));
      wanted_.pop_front();
      continue;
    }
    if (batch_.items() != static_cast<std::int64_t>(first.items))
      batch_ = replay::Batch(table_->batch_columns(), static_cast<std::int64_t>(first.items));
    if (table_->gather(*items, batch_)) {
      probabilities_.clear();
      for (const replay::SampledItem& item : items->items)
        probabilities_.push_back(item.probability);
      sampled_ += first.items;
      if (const auto sampler = samplers_.find(first.peer.substr(0, first.peer.rfind('.')));
          sampler != samplers_.end() && sampler->second.peer == first.peer)
        sampler->second.drawn += first.items;
      (void)samples_->send(
          first.peer, encode_batch(batch_, probabilities_, first.batch_id, items->min_probability));
    }
    wanted_.pop_front();
  }
}

void ShardServer::tell_samplers() {
  const auto now = std::chrono::steady_clock::now();
  for (auto& [name, sampler] : samplers_) {
    if (now - sampler.told_at < kTellEvery) continue;
    ShardState state = state_of(*table_, restored_);
    state.sampled = sampled_;
    state.own = sampler.drawn;
    if (sampler.grant.lead == lead_) {
      state.serial = sampler.grant.serial;
      state.allowed = sampler.grant.allowed;
    }
    if (sampler.told == state && now - sampler.told_at < kTellAgain) continue;
    sampler.told_at = now;  // also of one that is gone: it is not tried again at once
    if (samples_->send(sampler.peer, encode_state(state))) sampler.told = state;
  }
}

}  // namespace troupe::actors
