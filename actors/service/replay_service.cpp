// Admits requests, turns, answers and forgets. What each request does is in requests.cpp, what
// tables it holds in service_tables.cpp.
#include "actors/service/replay_service.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

constexpr int kMessagesAtOnce = 64;  // taken between two looks at what waits
constexpr std::chrono::seconds kSweep{1};

std::uint64_t random_session() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// Messages queued per peer and direction. ZeroMQ frees a full queue by halves, and answers to
// requests without credit pass through it too.
int queue_length(const ServiceOptions& options) { return static_cast<int>(2 * options.credit) + 8; }

Result<void> check_options(const ServiceOptions& options) {
  const auto within = [](std::int64_t value, std::int64_t low, std::int64_t high) {
    return value >= low && value <= high;
  };
  if (!within(options.max_message_mib, 1, 2048))
    return fail(ErrorCode::kInvalidArgument, "the largest message is not in 1..2048 MiB");
  if (!within(options.credit, 1, 256))
    return fail(ErrorCode::kInvalidArgument, "credit is not in 1..256");
  if (!within(options.max_clients, 1, 4096))
    return fail(ErrorCode::kInvalidArgument, "the number of clients is not in 1..4096");
  if (!within(options.max_table_mib, 0, std::int64_t{1} << 40))
    return fail(ErrorCode::kInvalidArgument, "the tables' memory is not in 0..2^40 MiB");
  if (options.disk_folder.empty() ? options.disk_mib != 0
                                  : !within(options.disk_mib, 1, std::int64_t{1} << 40))
    return fail(ErrorCode::kInvalidArgument,
                "the disk's folder and how many MiB of it may be used are given together, the "
                "latter in 1..2^40");
  if (!options.insecure && !is_loopback(options.endpoint))
    return fail(ErrorCode::kInvalidArgument,
                options.endpoint +
                    " can be reached from other hosts, and this service has neither encryption "
                    "nor passwords; use tcp://127.0.0.1:PORT or ipc://PATH, or accept it with "
                    "--insecure");
  return {};
}

}  // namespace

Result<std::unique_ptr<ReplayService>> ReplayService::open(const ServiceOptions& options) {
  if (auto good = check_options(options); !good) return tl::unexpected(good.error());
  const ChannelLimits limits{
      .max_message_bytes = static_cast<std::size_t>(options.max_message_bytes()),
      .high_water_mark = queue_length(options)};
  auto storage = replay::ChunkStorage::create(
      {.folder = options.disk_folder, .bytes = options.disk_mib << 20});
  if (!storage) return tl::unexpected(storage.error());
  auto channel = open_channel_server(options.endpoint, limits);
  if (!channel) return tl::unexpected(channel.error());
  return std::unique_ptr<ReplayService>(
      new ReplayService(options, *std::move(channel), *std::move(storage)));
}

ReplayService::ReplayService(ServiceOptions options, std::unique_ptr<ChannelServer> channel,
                             std::shared_ptr<replay::ChunkStorage> storage)
    : options_(std::move(options)),
      session_(random_session()),
      channel_(std::move(channel)),
      storage_(std::move(storage)) {}

std::uint64_t ReplayService::memory_bound() const {
  const auto messages = 2 * options_.credit + 2 * queue_length(options_);
  return static_cast<std::uint64_t>(options_.max_clients * messages) * options_.max_message_bytes();
}

milliseconds ReplayService::patience(milliseconds timeout) const {
  const auto now = Clock::now();
  for (const auto& table : tables_)
    if (const auto next = table->next_deadline(now))
      timeout = std::clamp(std::chrono::ceil<milliseconds>(*next - now), milliseconds{0}, timeout);
  return timeout;
}

void ReplayService::serve(milliseconds timeout) {
  timeout = patience(timeout);
  for (int i = 0; i < kMessagesAtOnce; ++i) {
    const auto received = channel_->receive(timeout);
    if (!received) break;
    timeout = milliseconds{0};
    take(*received, Clock::now());
  }
  const auto now = Clock::now();
  serve_tables(now);
  if (now >= next_sweep_) forget_silent(now);
}

// Inserts let samples pass and the other way round; every round answers something that waited.
void ReplayService::serve_tables(Clock::time_point now) {
  Answers answers;
  for (bool again = true; again;) {
    again = false;
    while (serve_queues(answers)) again = true;
    for (const auto& table : tables_) again = table->serve_samples(now, answers) || again;
    send_answers(answers);
  }
  for (const auto& table : tables_) table->serve_checkpoint(answers);
  send_answers(answers);
}

// One chunk of each. A queue that was served goes behind those that wait, so that none takes all
// the room that samples make.
bool ReplayService::serve_queues(Answers& answers) {
  std::deque<InsertQueue> waiting, served;
  for (InsertQueue& queue : queues_) {
    const bool one = queue.serve_one(answers);
    if (one || queue.size() > 0) (one ? served : waiting).push_back(std::move(queue));
  }
  const bool any = !served.empty();
  for (InsertQueue& queue : served)
    if (queue.size() > 0) waiting.push_back(std::move(queue));
  queues_ = std::move(waiting);
  return any;
}

void ReplayService::send_answers(Answers& answers) {
  for (Answer& answer : answers) {
    const Request& to = answer.to;
    if (const auto peer = peers_.find(to.peer); peer != peers_.end())
      --peer->second.under_way(to.kind);
    reply(to.peer, std::move(answer.message));
  }
  answers.clear();
}

// A peer that is gone, or reads nothing, loses its replies: it asks again when it comes back.
void ReplayService::reply(const std::string& peer, ChannelMessage message) {
  if (!channel_->send(peer, std::move(message))) ++counters_.lost_replies;
}

void ReplayService::take(const ChannelServer::Received& received, Clock::time_point now) {
  ++counters_.requests;
  Request request;
  Body body;
  Outcome failure = read_request(received, request, body);
  if (!failure) failure = admit(request, now);
  if (!failure) failure = handle(request, body, now);
  if (!failure) return;
  const bool junk =
      failure->code == ServiceErrorCode::kMalformed || failure->code == ServiceErrorCode::kVersion;
  ++(junk ? counters_.malformed : counters_.refused);
  reply(request.peer, error_reply(request.id, *failure));
}

ReplayService::Outcome ReplayService::admit(const Request& request, Clock::time_point now) {
  auto peer = peers_.find(request.peer);
  if (peer == peers_.end()) {
    if (peers_.size() >= static_cast<std::size_t>(options_.max_clients))
      return ServiceFailure{
          ServiceErrorCode::kUnavailable,
          "the service has its " + std::to_string(options_.max_clients) + " clients already"};
    peer = peers_.emplace(request.peer, Peer{}).first;
  }
  peer->second.last_seen = now;
  const bool waits = request.kind == ServiceKind::kInsert || request.kind == ServiceKind::kSample ||
                     request.kind == ServiceKind::kCheckpoint;
  if (!waits || peer->second.under_way(request.kind) < options_.credit) return std::nullopt;
  ++counters_.over_credit;
  return ServiceFailure{
      ServiceErrorCode::kOverCredit,
      "more than " + std::to_string(options_.credit) + " requests of this kind are under way"};
}

void ReplayService::forget_silent(Clock::time_point now) {
  next_sweep_ = now + kSweep;
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    if (now - peer->second.last_seen < options_.forget_after) {
      ++peer;
      continue;
    }
    for (const auto& table : tables_) table->forget(peer->first);
    for (InsertQueue& queue : queues_) queue.forget(peer->first);
    ++counters_.forgotten_peers;
    peer = peers_.erase(peer);
  }
}

nlohmann::json ReplayService::table_info(const HostedTable& table) const {
  std::size_t waiting = 0;
  std::string blocked;
  for (const InsertQueue& queue : queues_) {
    if (!queue.feeds(table)) continue;
    waiting += queue.size();
    if (blocked.empty()) blocked = queue.blocked();
  }
  return table.info(waiting, blocked);
}

nlohmann::json ReplayService::info() const {
  nlohmann::json tables = nlohmann::json::array();
  const replay::ChunkStorage::Totals totals = storage_->totals();
  std::uint64_t memory = totals.memory_bytes;
  for (const auto& table : tables_) {
    const nlohmann::json& one = tables.emplace_back(table_info(*table));
    memory +=
        one["memory_bytes"].get<std::uint64_t>() - one["chunk_memory_bytes"].get<std::uint64_t>();
  }
  return {{"session", std::to_string(session_)},
          {"endpoint", endpoint()},
          {"clients", peers_.size()},
          {"memory_bound_bytes", memory_bound()},
          {"chunks", totals.chunks},
          {"bytes_held", totals.bytes},
          {"memory_bytes", memory},
          {"disk_bytes", totals.disk_bytes},
          {"requests", counters_.requests},
          {"malformed", counters_.malformed + channel_->dropped()},
          {"refused", counters_.refused},
          {"over_credit", counters_.over_credit},
          {"lost_replies", counters_.lost_replies},
          {"forgotten_clients", counters_.forgotten_peers},
          {"tables", tables}};
}

}  // namespace troupe::actors
