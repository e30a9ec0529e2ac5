// The data actor: leases positions of the training set from the learner, reads, decodes and cuts
// the pictures there on threads of its own, and sends them. It has no state: one that dies is
// replaced, and what it had is leased to others. A detached actor.
#include <algorithm>
#include <deque>
#include <set>

#include "actors/messages/data_protocol.hpp"
#include "actors/roles/picture_data.hpp"
#include "actors/roles/role_support.hpp"
#include "actors/roles/send_window.hpp"
#include "replay/codec.hpp"

namespace troupe::actors {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
namespace data = learners::data;

constexpr milliseconds kResendAfter{3000}, kAskAgain{1000}, kIdle{5};
constexpr std::size_t kMostNamed = 1000;  // corrupt pictures that are told one by one

class DataRole final : public RoleBase {
 public:
  explicit DataRole(RoleContext context)
      : RoleBase(std::move(context)), window_(credit(), kResendAfter) {}

  Result<void> start() override {
    auto set = open_pictures(context().options, data::Split::kTraining);
    if (!set) return tl::unexpected(set.error());
    options_ = feed_options(context().options, **set, 0);
    signature_ = data::picture_signature(options_);
    loader_ = std::make_unique<data::Loader>(
        *set, loader_options(context().options, data::Split::kTraining));
    ready({});
    return {};
  }

  // Leases are of one life of the learner: what is under way for another one is given up.
  void peers(const Peers& peers) override {
    const std::string endpoint = peers.shard_endpoints.empty() ? "" : peers.shard_endpoints.front();
    if (endpoint == endpoint_) return;
    endpoint_ = endpoint;
    channel_.reset();
    for (Work& work : works_) work.wanted = false;
    window_ = SendWindow(credit(), kResendAfter);
    asked_ = false;
    if (endpoint.empty()) return;
    if (auto channel = open_channel_client(endpoint, context().peer_name()))
      channel_ = std::move(*channel);
    else
      warn("data_channel", channel.error().message);
  }

  void pause(bool paused) override { paused_ = paused; }

  Result<void> work() override {
    if (auto received = receive(works_.empty() ? kIdle : milliseconds{0}); !received)
      return received;
    ask();
    if (!works_.empty())
      if (auto delivered = deliver(); !delivered) return delivered;
    send();
    report();
    return {};
  }

  void checkpoint(const CheckpointRequest& request) override {
    parts_written(request.checkpoint, std::vector<FilePart>{}, "{}");
  }

  // What it was leased is delivered; an answer that is still to come may be another lease.
  void drain() override {
    draining_ = true;
    draining_since_ = Clock::now();
  }
  bool drained() override {
    if (!works_.empty() || window_.size() > 0) return false;
    return !asked_ || !channel_ || Clock::now() - draining_since_ > kAskAgain;
  }

  // A picture that may not be left out ends the run at once: it will not be better next time.
  bool is_final(const Error& error) const override { return error.code == ErrorCode::kCorrupt; }

  void stop() override { loader_.reset(); }

 private:
  struct Work {
    data::Lease lease;
    std::uint32_t learner_epoch = 0;
    bool wanted = true;
  };

  std::size_t credit() const { return static_cast<std::size_t>(context().options.actors.credit); }
  const Assignment& life() const { return context().assignment; }

  // One request at a time; it is repeated under its number until it is answered.
  void ask() {
    if (!channel_ || paused_ || (draining_ && !asked_) ||
        works_.size() + window_.size() >= credit())
      return;
    const auto now = Clock::now();
    if (asked_ && now - asked_at_ < kAskAgain) return;
    if (!asked_) ++serial_;
    asked_ = channel_
                 ->send(words_message<4>(DataKind::kWantLease, {life().index, life().incarnation,
                                                                serial_, signature_.spec_hash}))
                 .has_value();
    asked_at_ = now;
  }

  Result<void> receive(milliseconds timeout) {
    if (!channel_) {
      std::this_thread::sleep_for(timeout);
      return {};
    }
    while (const auto message = channel_->receive(timeout)) {
      timeout = milliseconds{0};
      if (auto taken = take(*message); !taken) return taken;
    }
    return {};
  }

  Result<void> take(const ChannelMessage& message) {
    switch (static_cast<DataKind>(message.kind)) {
      case DataKind::kLease:
        take_lease(message);
        return {};
      case DataKind::kAck:
        if (const auto words = words_of<3>(message))
          delivered_ += window_.acknowledge({static_cast<std::uint32_t>((*words)[1]), (*words)[2]})
                            .value_or(0);
        return {};
      case DataKind::kRefused:
        return fail(ErrorCode::kInvalidArgument,
                    "the learner refuses this data actor: " +
                        std::string(message.payload->begin() + 24, message.payload->end()));
      default:
        return {};
    }
  }

  void take_lease(const ChannelMessage& message) {
    const auto words = words_of<6>(message);
    if (!words || !asked_ || (*words)[0] != serial_) return;  // an answer that was repeated
    asked_ = false;
    const data::Lease lease{(*words)[2], (*words)[3], static_cast<std::int64_t>((*words)[4]),
                            static_cast<std::int64_t>((*words)[5])};
    if (lease.begin < 0 || lease.begin >= lease.end || lease.end > options_.size) return;
    works_.push_back({lease, static_cast<std::uint32_t>((*words)[1])});
    loader_->request(lease.epoch, lease.begin, lease.end);
  }

  // The oldest lease's pictures into the window.
  Result<void> deliver() {
    const Work work = works_.front();
    board().enter("reading pictures of epoch", work.lease.epoch);
    const auto pictures = loader_->next();
    board().leave();
    works_.pop_front();
    if (!pictures) return tl::unexpected(pictures.error());
    tell_corrupt(pictures->corrupt);
    if (!work.wanted) return {};
    options_.learner_epoch = work.learner_epoch;
    const replay::Chunk chunk =
        data::picture_chunk(work.lease, *pictures, {life().index, life().incarnation}, options_);
    window_.add({life().incarnation, work.lease.id}, chunk.header.steps,
                std::make_shared<const Bytes>(replay::encode(chunk, signature_)));
    return {};
  }

  void tell_corrupt(const std::vector<std::string>& names) {
    corrupt_ += names.size();
    for (const std::string& name : names)
      if (named_.size() < kMostNamed && named_.insert(name).second) warn("corrupt_picture", name);
  }

  void send() {
    const auto now = Clock::now();
    while (channel_) {
      const SendWindow::Entry* entry = window_.next(now);
      if (entry == nullptr) return;
      const SendWindow::Key key = entry->key;
      if (!channel_->send({static_cast<std::uint8_t>(DataKind::kSegment), entry->payload})) return;
      window_.sent(key, now);
    }
  }

  void report() {
    const char* waits = draining_         ? "drain"
                        : paused_         ? "pause"
                        : !channel_       ? "learner"
                        : !works_.empty() ? ""
                        : window_.full()  ? "acknowledgement"
                        : asked_          ? "lease"
                                          : "";
    blocked_.set(waits);
    if (!report_due()) return;
    RoleBoard::Snapshot snapshot;
    snapshot.counters["pictures"] = static_cast<double>(delivered_);
    snapshot.counters["corrupt_pictures"] = static_cast<double>(corrupt_);
    snapshot.counters["resent_chunks"] = static_cast<double>(window_.resent());
    blocked_.add_to(snapshot.counters);
    snapshot.waiting_on = blocked_.reason();
    board().publish(std::move(snapshot));
  }

  data::FeedOptions options_;
  replay::Signature signature_;
  std::unique_ptr<data::Loader> loader_;
  std::string endpoint_;
  std::unique_ptr<ChannelClient> channel_;
  std::deque<Work> works_;  // as they were given to the loader
  SendWindow window_;
  std::uint64_t serial_ = 0;
  bool asked_ = false, paused_ = false, draining_ = false;
  Clock::time_point asked_at_{}, draining_since_{};
  BlockedTime blocked_;
  std::set<std::string> named_;
  std::uint64_t delivered_ = 0, corrupt_ = 0;
};

}  // namespace

RoleActor spawn_data_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<DataRole>(system, std::move(context));
}

}  // namespace troupe::actors
