// Opens tables, admits requests, turns, answers and forgets. What each request does is in
// requests.cpp.
#include "actors/service/replay_service.hpp"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "replay/checkpoint.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxTables = 64;
constexpr int kMessagesAtOnce = 64;  // taken between two looks at what waits
constexpr std::chrono::seconds kSweep{1};

std::uint64_t random_session() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::uint64_t physical_memory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Messages queued per peer and direction. ZeroMQ frees a full queue by halves, and answers to
// requests without credit pass through it too.
int queue_length(const ServiceOptions& options) { return static_cast<int>(2 * options.credit) + 8; }

// Of a table that holds its capacity, every step once.
double full_mib(const replay::Signature& signature, const replay::TableOptions& options) {
  using Kind = replay::ItemShape::Kind;
  const replay::ItemShape& shape = options.items;
  const std::uint32_t steps = shape.kind == Kind::kEpisode    ? shape.length
                              : shape.kind == Kind::kSequence ? shape.period
                                                              : 1;
  return static_cast<double>(step_bytes(signature)) * static_cast<double>(options.capacity) *
         steps / (1 << 20);
}

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
  auto channel = open_channel_server(options.endpoint, limits);
  if (!channel) return tl::unexpected(channel.error());
  return std::unique_ptr<ReplayService>(new ReplayService(options, *std::move(channel)));
}

ReplayService::ReplayService(ServiceOptions options, std::unique_ptr<ChannelServer> channel)
    : options_(std::move(options)), session_(random_session()), channel_(std::move(channel)) {}

std::uint64_t ReplayService::memory_bound() const {
  const auto messages = 2 * options_.credit + 2 * queue_length(options_);
  return static_cast<std::uint64_t>(options_.max_clients * messages) * options_.max_message_bytes();
}

Result<void> ReplayService::check_room(const TableRequest& request) const {
  if (tables_.size() >= kMaxTables)
    return fail(ErrorCode::kUnavailable,
                "there are " + std::to_string(kMaxTables) + " tables already");
  double used = full_mib(request.signature, request.options);
  for (const auto& table : tables_)
    used += full_mib(table->table().signature(), table->table().options());
  const double limit = options_.max_table_mib > 0
                           ? static_cast<double>(options_.max_table_mib)
                           : 0.75 * static_cast<double>(physical_memory() >> 20);
  if (used <= limit) return {};
  return fail(ErrorCode::kInvalidArgument,
              "with table '" + request.name + "' (" + std::to_string(request.options.capacity) +
                  " items of " + std::to_string(step_bytes(request.signature)) +
                  " bytes) all tables would need " + std::to_string(static_cast<long>(used)) +
                  " MiB when full, more than the " + std::to_string(static_cast<long>(limit)) +
                  " MiB allowed");
}

Result<std::vector<std::string>> ReplayService::add_table(const TableRequest& request) {
  if (auto room = check_room(request); !room) return tl::unexpected(room.error());
  // Keys from before this start name nothing here, whatever was restored.
  replay::TableOptions options = request.options;
  options.shard_epoch = static_cast<std::uint32_t>(session_);
  auto table = replay::Table::create(options, request.signature);
  if (!table) return tl::unexpected(table.error());
  std::vector<std::string> notes;
  const auto path = checkpoint_path(request.name);
  if (std::error_code error; !path.empty() && std::filesystem::exists(path, error)) {
    auto restored = replay::restore(**table, path);
    if (!restored) return tl::unexpected(restored.error());
    notes = *std::move(restored);
    notes.push_back("table '" + request.name + "' was restored from " + path.string());
  }
  const auto id = first_id() + static_cast<std::uint32_t>(tables_.size());
  tables_.push_back(std::make_unique<HostedTable>(request.name, id, *std::move(table)));
  return notes;
}

std::filesystem::path ReplayService::checkpoint_path(const std::string& table) const {
  if (options_.checkpoint_directory.empty()) return {};
  return options_.checkpoint_directory / (table + ".table");
}

Result<void> ReplayService::write_checkpoints() {
  Result<void> result;
  if (options_.checkpoint_directory.empty()) return result;
  for (const auto& table : tables_) {
    const auto written =
        replay::write_checkpoint(table->table().snapshot(), checkpoint_path(table->name()));
    if (!written && result) result = tl::unexpected(written.error());
  }
  return result;
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
  Answers answers;
  for (const auto& table : tables_) {
    table->serve(now, answers);
    send_answers(answers);
  }
  if (now >= next_sweep_) forget_silent(now);
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
    ++counters_.forgotten_peers;
    peer = peers_.erase(peer);
  }
}

nlohmann::json ReplayService::info() const {
  nlohmann::json tables = nlohmann::json::array();
  for (const auto& table : tables_) tables.push_back(table->info());
  return {{"session", std::to_string(session_)},
          {"endpoint", endpoint()},
          {"clients", peers_.size()},
          {"memory_bound_bytes", memory_bound()},
          {"requests", counters_.requests},
          {"malformed", counters_.malformed + channel_->dropped()},
          {"refused", counters_.refused},
          {"over_credit", counters_.over_credit},
          {"lost_replies", counters_.lost_replies},
          {"forgotten_clients", counters_.forgotten_peers},
          {"tables", tables}};
}

}  // namespace troupe::actors
