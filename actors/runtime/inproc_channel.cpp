// The channel inside one process: queues of shared pointers under one mutex per name; no byte is
// copied. Each endpoint object belongs to one thread; hubs are shared by the threads of both sides.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "actors/runtime/channel_implementations.hpp"

namespace troupe::actors {
namespace {

using Milliseconds = std::chrono::milliseconds;

// One client as the hub sees it. Guarded by the hub's mutex.
struct Peer {
  explicit Peer(std::string peer_name) : name(std::move(peer_name)) {}
  const std::string name;
  std::condition_variable arrived;
  std::deque<ChannelMessage> inbox;  // server -> client
  int outstanding = 0;               // client -> server, sent and not yet received
  bool replaced = false;             // a newer client took the name
  std::size_t limit = 0;
};

// Where the server and the clients of one name meet; it exists as long as one of them does.
struct Hub {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<std::pair<std::shared_ptr<Peer>, ChannelMessage>> inbox;  // clients -> server
  std::unordered_map<std::string, std::shared_ptr<Peer>> peers;
  bool served = false;
};

std::shared_ptr<Hub> find_hub(const std::string& endpoint) {
  static std::mutex mutex;
  static std::unordered_map<std::string, std::weak_ptr<Hub>> hubs;
  const std::lock_guard lock(mutex);
  std::erase_if(hubs, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<Hub> hub = hubs[endpoint].lock();
  if (!hub) hubs[endpoint] = hub = std::make_shared<Hub>();
  return hub;
}

class InprocServer final : public ChannelServer {
 public:
  InprocServer(std::string endpoint, ChannelLimits limits, std::shared_ptr<Hub> hub)
      : endpoint_(std::move(endpoint)), limits_(limits), hub_(std::move(hub)) {}

  ~InprocServer() override {
    const std::lock_guard lock(hub_->mutex);
    hub_->served = false;
    hub_->inbox.clear();
    for (auto& [name, peer] : hub_->peers) peer->outstanding = 0;
  }

  std::string endpoint() const override { return endpoint_; }

  Result<void> send(const std::string& peer_name, ChannelMessage message) override {
    if (auto checked = check_size(message, limits_, peer_name); !checked) return checked;
    if (!message.payload) message.payload = empty_payload();
    const std::lock_guard lock(hub_->mutex);
    const auto found = hub_->peers.find(peer_name);
    if (found == hub_->peers.end())
      return fail(ErrorCode::kUnavailable,
                  "peer " + peer_name + " is not connected to " + endpoint_);
    Peer& peer = *found->second;
    if (peer.inbox.size() >= peer.limit)
      return fail(ErrorCode::kUnavailable,
                  "the queue of peer " + peer_name + " on " + endpoint_ + " is full");
    peer.inbox.push_back(std::move(message));
    peer.arrived.notify_one();
    return {};
  }

  std::optional<Received> receive(Milliseconds timeout) override {
    std::unique_lock lock(hub_->mutex);
    if (!hub_->arrived.wait_for(lock, timeout, [this] { return !hub_->inbox.empty(); }))
      return std::nullopt;
    auto [peer, message] = std::move(hub_->inbox.front());
    hub_->inbox.pop_front();
    --peer->outstanding;
    return Received{peer->name, std::move(message)};
  }

  // Nothing can be malformed here: the sender refuses what is too large.
  std::uint64_t dropped() const override { return 0; }

 private:
  const std::string endpoint_;
  const ChannelLimits limits_;
  const std::shared_ptr<Hub> hub_;
};

class InprocClient final : public ChannelClient {
 public:
  InprocClient(std::string endpoint, ChannelLimits limits, std::shared_ptr<Hub> hub,
               std::shared_ptr<Peer> peer)
      : endpoint_(std::move(endpoint)),
        limits_(limits),
        hub_(std::move(hub)),
        peer_(std::move(peer)) {}

  ~InprocClient() override {
    const std::lock_guard lock(hub_->mutex);
    if (!peer_->replaced) hub_->peers.erase(peer_->name);
  }

  Result<void> send(ChannelMessage message) override {
    if (auto checked = check_size(message, limits_, endpoint_); !checked) return checked;
    if (!message.payload) message.payload = empty_payload();
    const std::lock_guard lock(hub_->mutex);
    if (!hub_->served || peer_->replaced)
      return fail(ErrorCode::kUnavailable, peer_->replaced
                                               ? "a newer peer took the name " + peer_->name
                                               : "nobody serves " + endpoint_ + " now");
    if (peer_->outstanding >= limits_.high_water_mark)
      return fail(ErrorCode::kUnavailable, "the queue to " + endpoint_ + " is full");
    ++peer_->outstanding;
    hub_->inbox.emplace_back(peer_, std::move(message));
    hub_->arrived.notify_one();
    return {};
  }

  std::optional<ChannelMessage> receive(Milliseconds timeout) override {
    std::unique_lock lock(hub_->mutex);
    if (!peer_->arrived.wait_for(lock, timeout, [this] { return !peer_->inbox.empty(); }))
      return std::nullopt;
    ChannelMessage message = std::move(peer_->inbox.front());
    peer_->inbox.pop_front();
    return message;
  }

 private:
  const std::string endpoint_;
  const ChannelLimits limits_;
  const std::shared_ptr<Hub> hub_;
  const std::shared_ptr<Peer> peer_;
};

}  // namespace

Result<std::unique_ptr<ChannelServer>> open_inproc_server(const std::string& endpoint,
                                                          ChannelLimits limits) {
  std::shared_ptr<Hub> hub = find_hub(endpoint);
  {
    const std::lock_guard lock(hub->mutex);
    if (std::exchange(hub->served, true))
      return fail(ErrorCode::kUnavailable, "address in use: " + endpoint +
                                               " has a server in this process; use another name");
  }
  return std::make_unique<InprocServer>(endpoint, limits, std::move(hub));
}

Result<std::unique_ptr<ChannelClient>> open_inproc_client(const std::string& endpoint,
                                                          const std::string& peer_name,
                                                          ChannelLimits limits) {
  std::shared_ptr<Hub> hub = find_hub(endpoint);
  auto peer = std::make_shared<Peer>(peer_name);
  peer->limit = static_cast<std::size_t>(limits.high_water_mark);
  {
    const std::lock_guard lock(hub->mutex);
    std::shared_ptr<Peer>& entry = hub->peers[peer_name];
    if (entry) entry->replaced = true;
    entry = peer;
  }
  return std::make_unique<InprocClient>(endpoint, limits, std::move(hub), std::move(peer));
}

}  // namespace troupe::actors
