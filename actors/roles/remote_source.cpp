// Batches from shards in other processes: asks each shard for its share of a batch, and puts the
// shares together in the order of the shards.
#include <algorithm>
#include <optional>

#include "actors/messages/data_protocol.hpp"
#include "actors/roles/batch_message.hpp"
#include "actors/roles/batch_source.hpp"
#include "actors/runtime/channel.hpp"
#include "actors/runtime/thread_settings.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kPoll{2};
constexpr milliseconds kAskAgain{1000};  // a request may have died with a connection

class RemoteSource final : public BatchSource {
 public:
  RemoteSource(std::vector<Column> columns, std::int64_t items, std::int64_t ahead,
               std::string peer_name, Random random)
      : BatchSource(std::move(columns), items, ahead),
        peer_name_(std::move(peer_name)),
        ahead_(static_cast<std::size_t>(ahead)),
        random_(random),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  void set_endpoints(const std::vector<std::string>& endpoints) override {
    const std::lock_guard lock(endpoints_mutex_);
    wanted_endpoints_ = endpoints;
  }

 private:
  struct Shard {
    std::string endpoint;
    std::unique_ptr<ChannelClient> channel;
    std::uint64_t held = 0;
    bool known = false;  // has answered since it was connected
  };
  struct Share {
    std::uint64_t items = 0;
    bool asked = false;  // the request is on its way
    bool here = false;
    std::int64_t first_row = 0;
  };
  struct Order {
    std::uint64_t id = 0;
    replay::Batch* batch = nullptr;
    std::vector<Share> shares;  // per shard
    Clock::time_point asked_at{};
  };

  void run(const std::stop_token& stop) {
    name_thread("prefetch");
    while (!stop.stop_requested()) {
      connect();
      if (orders_.size() < ahead_ && any_channel()) {
        replay::Batch* batch = take_empty(stop);
        if (batch == nullptr) return;
        order(batch);
      }
      receive();
      ask_again();
    }
  }

  bool any_channel() const {
    return std::any_of(shards_.begin(), shards_.end(),
                       [](const Shard& s) { return s.channel != nullptr; });
  }

  // A shard that moved has lost the requests it had; orders that wait for it are drawn anew.
  void connect() {
    std::vector<std::string> wanted;
    {
      const std::lock_guard lock(endpoints_mutex_);
      wanted = wanted_endpoints_;
    }
    if (shards_.size() < wanted.size()) shards_.resize(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (shards_[i].endpoint == wanted[i]) continue;
      shards_[i] = Shard{.endpoint = wanted[i], .channel = nullptr};
      if (!wanted[i].empty())
        if (auto channel = open_channel_client(wanted[i], peer_name_))
          shards_[i].channel = std::move(*channel);
      for (Order& waiting : orders_) draw(waiting);
    }
    if (!any_channel()) {
      set_reason("no replay shard is there");
      std::this_thread::sleep_for(kPoll);
    }
  }

  void order(replay::Batch* batch) {
    orders_.push_back({.id = 0, .batch = batch, .shares = {}});
    draw(orders_.back());
  }

  // Draws the shares under a new id and asks for them; answers to the old id are ignored.
  void draw(Order& order) {
    order.id = next_id_++;
    std::vector<std::uint64_t> held;
    for (const Shard& shard : shards_)
      held.push_back(!shard.channel ? 0 : shard.known ? shard.held : 1);
    const auto counts = draw_counts(static_cast<std::size_t>(order.batch->items()), held, random_);
    order.shares.assign(shards_.size(), Share{});
    std::int64_t row = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      order.shares[i] = Share{counts[i], false, counts[i] == 0, row};
      row += static_cast<std::int64_t>(counts[i]);
    }
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
      if (Clock::now() - waiting.asked_at > kAskAgain)
        for (Share& share : waiting.shares) share.asked = false;
      ask(waiting);
    }
  }

  void receive() {
    bool waited = false;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      if (!shards_[i].channel) continue;
      while (auto message = shards_[i].channel->receive(waited ? milliseconds{0} : kPoll)) {
        waited = true;
        take(i, *message);
      }
      waited = true;
    }
    if (!orders_.empty()) set_reason("the shards hold the batch back (rate limiter)");
  }

  void take(std::size_t shard, const ChannelMessage& message) {
    const auto head = batch_head(message);
    if (!head) return;
    const auto found = std::find_if(orders_.begin(), orders_.end(),
                                    [&](const Order& order) { return order.id == head->batch_id; });
    shards_[shard].held = head->held;
    shards_[shard].known = true;
    if (found == orders_.end()) return;
    Share& share = found->shares[shard];
    if (share.here || share.items != head->items) return;
    if (auto decoded = decode_batch(message, *found->batch, share.first_row); !decoded) {
      set_reason(decoded.error().message);
      return;
    }
    share.here = true;
    const bool complete = std::all_of(found->shares.begin(), found->shares.end(),
                                      [](const Share& other) { return other.here; });
    if (!complete) return;
    found->batch->batch_id = found->id;
    give_filled(found->batch);
    orders_.erase(found);
  }

  const std::string peer_name_;
  const std::size_t ahead_;
  Random random_;
  std::mutex endpoints_mutex_;
  std::vector<std::string> wanted_endpoints_;
  std::vector<Shard> shards_;
  std::vector<Order> orders_;
  std::uint64_t next_id_ = 1;
  std::jthread thread_;  // last: stopped and joined before the rest goes
};

}  // namespace

std::unique_ptr<BatchSource> make_remote_source(std::vector<Column> columns, std::int64_t items,
                                                std::int64_t ahead, std::string peer_name,
                                                Random random) {
  return std::make_unique<RemoteSource>(std::move(columns), items, ahead, std::move(peer_name),
                                        random);
}

}  // namespace troupe::actors
