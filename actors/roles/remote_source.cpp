// Batches from shards in other processes: asks each shard for its share of a batch, puts the shares
// together in the order of the shards and weighs the items; hears what the shards have, and sends
// them leave to insert and new priorities.
#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "actors/messages/data_protocol.hpp"
#include "actors/roles/batch_message.hpp"
#include "actors/roles/batch_source.hpp"
#include "actors/roles/draw_shares.hpp"
#include "actors/roles/nap.hpp"
#include "actors/runtime/channel.hpp"
#include "actors/runtime/thread_settings.hpp"
#include "replay/importance.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kAskAgain{1000};      // what was sent may have died with a connection
constexpr std::size_t kMostPriorities = 64;  // batches whose priorities wait to be sent

class RemoteSource final : public BatchSource {
 public:
  RemoteSource(std::vector<Column> columns, std::string peer_name, const SourceOptions& options)
      : BatchSource(std::move(columns), options),
        peer_name_(std::move(peer_name)),
        ahead_(static_cast<std::size_t>(options.ahead)),
        follows_(options.follows),
        importance_exponent_(options.importance_exponent),
        weight_scale_(options.weight_scale),
        random_(options.random),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  void set_endpoints(const std::vector<std::string>& endpoints) override {
    const std::lock_guard lock(shared_mutex_);
    wanted_endpoints_ = endpoints;
  }

  void set_lead(std::uint32_t lead) override { wanted_lead_ = lead; }

  // The filling thread owns the channels: it sends them.
  void update_priorities(std::span<const replay::ItemKey> keys,
                         std::span<const float> values) override {
    std::size_t lost = 0;
    {
      const std::lock_guard lock(shared_mutex_);
      priorities_.push_back({{keys.begin(), keys.end()}, {values.begin(), values.end()}});
      if (priorities_.size() > kMostPriorities) {
        lost = priorities_.front().keys.size();
        priorities_.pop_front();
      }
    }
    if (lost > 0) count_priorities(0, lost);
  }

 private:
  struct Shard {
    std::string endpoint;
    std::unique_ptr<ChannelClient> channel;
    Clock::time_point greeted{}, granted{};
    bool known = false;  // has told its state since it was connected
  };
  struct Share {
    std::uint64_t items = 0;
    bool asked = false;  // the request is on its way
    bool here = false;
    std::int64_t first_row = 0;
    double probability = 0;  // of a draw to come from this shard
    double min_probability = 0;
  };
  struct Order {
    std::uint64_t id = 0;  // 0: not drawn, the shards had nothing
    replay::Batch* batch = nullptr;
    std::vector<Share> shares;  // per shard
    std::vector<double> probabilities;
    Clock::time_point asked_at{};
  };

  void run(const std::stop_token& stop) {
    name_thread("prefetch");
    while (!stop.stop_requested()) {
      connect();
      begin_order(stop);
      for (Order& waiting : orders_)
        if (waiting.id == 0) draw(waiting);
      receive();
      send_grants();
      send_priorities();
      ask_again();
    }
  }

  // A shard that moved has lost the requests it had; orders that wait are drawn anew.
  void connect() {
    std::vector<std::string> wanted;
    {
      const std::lock_guard lock(shared_mutex_);
      wanted = wanted_endpoints_;
    }
    if (shards_.size() < wanted.size()) shards_.resize(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (shards_[i].endpoint == wanted[i]) continue;
      shards_[i] = Shard{};
      shards_[i].endpoint = wanted[i];
      with_limiter([&](GlobalLimiter& limiter) { limiter.gone(i); });
      if (!wanted[i].empty())
        if (auto channel = open_channel_client(wanted[i], peer_name_))
          shards_[i].channel = std::move(*channel);
      for (Order& waiting : orders_) waiting.id = 0;
    }
    const auto now = Clock::now();
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      // Until it answers: a shard only speaks to samplers that it knows.
      if (!shards_[i].channel || shards_[i].known || now - shards_[i].greeted < kAskAgain) continue;
      if (shards_[i].channel->send(encode_grant({}))) shards_[i].greeted = now;
    }
  }

  void begin_order(const std::stop_token& stop) {
    if (orders_.size() >= ahead_) return;
    const std::string reason = with_limiter(
        [&](const GlobalLimiter& limiter) { return limiter.sample_block_reason(counted_); });
    if (!reason.empty()) {
      set_reason(no_shard() ? "no replay shard is there" : reason);
      return;
    }
    replay::Batch* batch = take_empty(stop, milliseconds{0});
    if (batch == nullptr) return;
    with_limiter([&](GlobalLimiter& limiter) { limiter.commit_sample(counted_); });
    orders_.push_back({});
    orders_.back().batch = batch;
    orders_.back().probabilities.resize(items_);
  }

  bool no_shard() const {
    return std::none_of(shards_.begin(), shards_.end(), [](const Shard& s) { return s.known; });
  }

  // Draws the shares under a new id and asks for them; answers to the old id are ignored.
  void draw(Order& order) {
    std::vector<ShardState> states =
        with_limiter([](const GlobalLimiter& limiter) { return limiter.states(); });
    states.resize(shards_.size());
    const std::vector<double> shares = draw_shares(states);
    const auto counts = draw_counts(items_, shares, random_);
    order.shares.assign(shards_.size(), Share{});
    std::int64_t row = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      order.shares[i] = {counts[i], false,     counts[i] == 0,
                         row,       shares[i], states[i].min_probability};
      row += static_cast<std::int64_t>(counts[i]);
    }
    if (row == 0) return set_reason("every shard is empty");
    order.id = next_id_++;
    ask(order);
  }

  // A request that cannot leave now (the connection is not up yet) is tried again in the next
  // round.
  void ask(Order& order) {
    for (std::size_t i = 0; i < order.shares.size(); ++i) {
      Share& share = order.shares[i];
      if (share.here || share.asked || !shards_[i].channel) continue;
      const auto sent =
          shards_[i].channel->send(words_message<2>(DataKind::kWantBatch, {order.id, share.items}));
      share.asked = sent.has_value();
      if (share.asked) order.asked_at = Clock::now();
    }
  }

  void ask_again() {
    for (Order& waiting : orders_) {
      if (waiting.id == 0) continue;
      if (Clock::now() - waiting.asked_at > kAskAgain)
        for (Share& share : waiting.shares) share.asked = false;
      ask(waiting);
    }
  }

  void receive() {
    bool any = false;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      if (!shards_[i].channel) continue;
      while (auto message = shards_[i].channel->receive(milliseconds{0})) {
        any = true;
        if (const auto state = decode_state(*message)) {
          shards_[i].known = true;
          with_limiter([&](GlobalLimiter& limiter) { limiter.report(i, *state); });
        } else {
          take(i, *message);
        }
      }
    }
    if (any)
      nap_.disturb();
    else
      nap_.take();
    for (const Order& order : orders_)
      for (std::size_t i = 0; order.id != 0 && i < order.shares.size(); ++i)
        if (!order.shares[i].here)
          set_reason("batch waits for its " + std::to_string(order.shares[i].items) +
                     " items of shard " + std::to_string(i));
  }

  void take(std::size_t shard, const ChannelMessage& message) {
    const auto head = batch_head(message);
    if (!head) return;
    const auto found = std::find_if(orders_.begin(), orders_.end(), [&](const Order& order) {
      return order.id != 0 && order.id == head->batch_id;
    });
    if (found == orders_.end() || shard >= found->shares.size()) return;
    Share& share = found->shares[shard];
    if (share.here) return;
    if (head->items == 0) {  // its items went since it told of them
      found->id = 0;
      return;
    }
    if (share.items != head->items) return;
    if (auto decoded = decode_batch(message, *found->batch, found->probabilities, share.first_row);
        !decoded) {
      set_reason(decoded.error().message);
      return;
    }
    share.here = true;
    share.min_probability = head->min_probability;
    const bool complete = std::all_of(found->shares.begin(), found->shares.end(),
                                      [](const Share& other) { return other.here; });
    if (!complete) return;
    weigh(*found);
    found->batch->batch_id = found->id;
    give_filled(found->batch);
    orders_.erase(found);
  }

  // Each shard weighed its items as if it were alone.
  void weigh(Order& order) const {
    if (importance_exponent_ == 0) return;
    double smallest = 1;
    for (const Share& share : order.shares) {
      const auto first = static_cast<std::size_t>(share.first_row);
      for (std::size_t i = first; i < first + share.items; ++i)
        order.probabilities[i] *= share.probability;
      if (share.min_probability > 0 && share.probability > 0)
        smallest = std::min(smallest, share.min_probability * share.probability);
    }
    replay::importance_weights(order.probabilities, smallest, importance_exponent_, weight_scale_,
                               order.batch->floats("weight"));
  }

  void send_grants() {
    if (const std::uint32_t lead = wanted_lead_; lead != std::exchange(lead_, lead) && lead > 0)
      with_limiter([&](GlobalLimiter& limiter) { limiter.begin_lead(lead); });
    if (follows_ && lead_ == 0) return;
    const auto now = Clock::now();
    const auto send = [&](const Grant& grant) {
      Shard& shard = shards_[grant.shard];
      if (shard.channel && shard.channel->send(encode_grant(grant))) shard.granted = now;
    };
    const auto grants = with_limiter([](GlobalLimiter& limiter) { return limiter.grants(); });
    for (const Grant& grant : grants) send(grant);
    const auto again =
        with_limiter([](const GlobalLimiter& limiter) { return limiter.unacknowledged(); });
    for (const Grant& grant : again)
      if (grant.shard < shards_.size() && now - shards_[grant.shard].granted > kAskAgain)
        send(grant);
  }

  void send_priorities() {
    std::deque<Update> updates;
    {
      const std::lock_guard lock(shared_mutex_);
      updates.swap(priorities_);
    }
    for (const Update& update : updates) {
      const std::vector<Priorities> parts = by_shard(update.keys, update.values, shards_.size());
      std::size_t handed = 0;
      for (std::size_t i = 0; i < parts.size(); ++i)
        if (!parts[i].keys.empty() && shards_[i].channel &&
            shards_[i].channel->send(encode_priorities(parts[i])))
          handed += parts[i].keys.size();
      count_priorities(handed, update.keys.size() - handed);
    }
  }

  struct Update {
    std::vector<replay::ItemKey> keys;
    std::vector<float> values;
  };

  const std::string peer_name_;
  const std::size_t ahead_;
  const bool follows_;
  const double importance_exponent_;
  const replay::WeightScale weight_scale_;
  Random random_;
  std::atomic<std::uint32_t> wanted_lead_{0};
  std::uint32_t lead_ = 0;
  std::mutex shared_mutex_;
  std::vector<std::string> wanted_endpoints_;
  std::deque<Update> priorities_;
  std::vector<Shard> shards_;
  std::vector<Order> orders_;
  std::uint64_t next_id_ = 1;
  Nap nap_;
  std::jthread thread_;  // last: stopped and joined before the rest goes
};

}  // namespace

std::unique_ptr<BatchSource> make_remote_source(std::vector<Column> columns, std::string peer_name,
                                                const SourceOptions& options) {
  return std::make_unique<RemoteSource>(std::move(columns), std::move(peer_name), options);
}

}  // namespace troupe::actors
