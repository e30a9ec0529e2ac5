// What each request of the service does. Everything it says is compared with the bytes at hand
// before anything is allocated for it.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "actors/service/replay_service.hpp"
#include "replay/bytes.hpp"
#include "replay/codec.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxJson = 65536;
// Flags of an insert.
constexpr std::uint32_t kZlibChecksum = 1, kMoreTables = 2;
constexpr std::uint32_t kAllTables = 0xffffffff;  // of an info request

ServiceFailure malformed(const char* what) {
  return {ServiceErrorCode::kMalformed, std::string("the request's body is no ") + what};
}

ServiceFailure failure_of(const Error& error) {
  return {service_code_of(error.code), error.message};
}

ServiceFailure no_table(std::uint32_t id) {
  return {ServiceErrorCode::kNotFound, "there is no table with id " + std::to_string(id)};
}

}  // namespace

ReplayService::Outcome ReplayService::handle(const Request& request, Body body,
                                             Clock::time_point now) {
  switch (request.kind) {
    case ServiceKind::kHello:
      return hello(request);
    case ServiceKind::kTable:
      return open_table(request, body);
    case ServiceKind::kInsert:
      return insert(request, body);
    case ServiceKind::kSample:
      return sample(request, body, now);
    case ServiceKind::kPriorities:
      return priorities(request, body);
    case ServiceKind::kInfo:
      return tell(request, body);
    case ServiceKind::kCheckpoint:
      return checkpoint(request, body);
    case ServiceKind::kEndWriter:
      return end_writer(request, body);
    case ServiceKind::kMemory:
      return share_memory(request, body);
  }
  return malformed("known request");
}

ReplayService::Outcome ReplayService::hello(const Request& request) {
  reply(request.peer, json_reply(request, {{"session", std::to_string(session_)},
                                           {"protocol", kServiceVersion},
                                           {"credit", options_.credit},
                                           {"max_message_bytes", options_.max_message_bytes()}}));
  return std::nullopt;
}

nlohmann::json ReplayService::table_json(const HostedTable& table) const {
  const replay::Signature& signature = table.table().signature();
  nlohmann::json options = options_json(table.table().options());
  for (std::size_t i = 0; i < signature.frame_stack.size(); ++i)
    options["frame_stack"][signature.observation[i].name] = signature.frame_stack[i];
  return {{"id", table.id()},
          {"name", table.name()},
          {"session", std::to_string(session_)},
          {"spec_hash", std::to_string(signature.spec_hash)},
          {"observation", columns_json(signature.observation)},
          {"step", columns_json(signature.step)},
          {"batch", columns_json(table.table().batch_columns())},
          {"options", options}};
}

ReplayService::Outcome ReplayService::open_table(const Request& request, Body body) {
  if (body.size() > kMaxJson) return malformed("JSON text of at most 64 KiB");
  const auto json = nlohmann::json::parse(body.begin(), body.end(), nullptr, false);
  if (json.is_discarded()) return malformed("JSON text");
  const auto wanted = read_table_request(json, options_.max_message_bytes() / 4);
  if (!wanted) return failure_of(wanted.error());
  const auto same_name = [&](const auto& table) { return table->name() == wanted->name; };
  auto found = std::find_if(tables_.begin(), tables_.end(), same_name);
  std::vector<std::string> notes;
  if (found == tables_.end()) {
    if (!wanted->declares)
      return ServiceFailure{ServiceErrorCode::kNotFound, "there is no table '" + wanted->name +
                                                             "'; declare it with its columns"};
    auto added = add_table(*wanted);
    if (!added) return failure_of(added.error());
    notes = *std::move(added);
    found = std::prev(tables_.end());
  } else if (wanted->declares) {
    const HostedTable& table = **found;
    if (table.table().signature() != wanted->signature)
      return ServiceFailure{ServiceErrorCode::kMismatch,
                            "table '" + wanted->name + "' exists with other columns: " +
                                columns_json(table.table().signature().observation).dump() +
                                " and " + columns_json(table.table().signature().step).dump()};
    const auto have = options_json(table.table().options()), want = options_json(wanted->options);
    for (const auto& [key, value] : want.items())
      if (have[key] != value)
        notes.push_back(key + " is " + have[key].dump() + ", not " + value.dump() +
                        ": the table existed before");
  }
  nlohmann::json answer = table_json(**found);
  answer["notes"] = notes;
  reply(request.peer, json_reply(request, answer));
  return std::nullopt;
}

HostedTable* ReplayService::find(std::uint32_t id) {
  const std::uint32_t index = id - first_id();
  return index < tables_.size() ? tables_[index].get() : nullptr;
}

Result<InsertQueue*> ReplayService::queue_of(const std::vector<HostedTable*>& tables) {
  for (InsertQueue& queue : queues_)
    if (queue.tables() == tables) return &queue;
  auto queue = InsertQueue::of(tables);
  if (!queue) return tl::unexpected(queue.error());
  return &queues_.emplace_back(*std::move(queue));
}

// u32 table | u32 flags | with kMoreTables u32 count, count x u32 table | chunk
ReplayService::Outcome ReplayService::insert(const Request& request, Body body) {
  replay::ByteReader in(body);
  const auto id = in.take<std::uint32_t>(), flags = in.take<std::uint32_t>();
  if (!in.ok() || (flags & ~(kZlibChecksum | kMoreTables)) != 0) return malformed("insert");
  const auto more = (flags & kMoreTables) != 0 ? in.take<std::uint32_t>() : 0;
  if (!in.ok() || more > in.remaining() / sizeof id) return malformed("insert");
  std::vector<HostedTable*> tables;
  for (std::uint32_t i = 0; i <= more; ++i) {
    const std::uint32_t one = i == 0 ? id : in.take<std::uint32_t>();
    tables.push_back(find(one));
    if (tables.back() == nullptr) return no_table(one);
    if (std::find(tables.begin(), tables.end() - 1, tables.back()) != tables.end() - 1)
      return ServiceFailure{ServiceErrorCode::kInvalidArgument,
                            "an insert names table '" + tables.back()->name() + "' twice"};
  }
  // The same tables in another order are the same queue.
  std::sort(tables.begin(), tables.end(),
            [](const HostedTable* a, const HostedTable* b) { return a->id() < b->id(); });
  HostedTable* const table = tables.front();
  const replay::DecodeLimits limits{.max_bytes = body.size(),
                                    .max_steps = table->table().options().max_chunk_steps,
                                    .checksum = (flags & kZlibChecksum) != 0
                                                    ? replay::ChunkChecksum::kCrc32
                                                    : replay::ChunkChecksum::kCrc32c};
  auto chunk = replay::decode(in.view(in.remaining()), table->table().signature(), limits);
  if (!chunk) return failure_of(chunk.error());
  const auto queue = queue_of(tables);
  if (!queue) return failure_of(queue.error());
  const auto repeated = (*queue)->add(request, *std::move(chunk));
  if (!repeated) return failure_of(repeated.error());
  if (!*repeated) ++peers_[request.peer].under_way(request.kind);
  return std::nullopt;
}

// u32 table | u32 items | u32 milliseconds, and, for a batch in shared memory, | u32 slot
ReplayService::Outcome ReplayService::sample(const Request& request, Body body,
                                             Clock::time_point now) {
  replay::ByteReader in(body);
  const auto id = in.take<std::uint32_t>(), items = in.take<std::uint32_t>();
  const auto wait = in.take<std::uint32_t>();
  const bool shared = in.ok() && in.remaining() > 0;
  const auto slot = shared ? in.take<std::uint32_t>() : 0;
  if (!in.finished()) return malformed("sample request");
  HostedTable* table = find(id);
  if (table == nullptr) return no_table(id);
  Peer& peer = peers_[request.peer];
  if (shared && !peer.memory)
    return ServiceFailure{ServiceErrorCode::kInvalidArgument, "no memory is shared yet"};
  const auto added = table->add_sample(
      {request, items, now + milliseconds{wait}, shared ? peer.memory : nullptr, slot},
      options_.max_message_bytes());
  if (!added) return failure_of(added.error());
  ++peer.under_way(request.kind);
  return std::nullopt;
}

// u32 table | u32 zero | u64 count, keys | u64 count, values
ReplayService::Outcome ReplayService::priorities(const Request& request, Body body) {
  replay::ByteReader in(body);
  const auto id = in.take<std::uint32_t>();
  in.take<std::uint32_t>();
  std::vector<replay::ItemKey> keys;
  std::vector<double> values;
  in.array(keys);
  in.array(values);
  if (!in.finished() || keys.size() != values.size()) return malformed("priority update");
  HostedTable* table = find(id);
  if (table == nullptr) return no_table(id);
  const std::array<std::uint64_t, 1> current{table->table().update_priorities(keys, values)};
  reply(request.peer, words_reply(request, current));
  return std::nullopt;
}

// u32 table, or all bits set for everything
ReplayService::Outcome ReplayService::tell(const Request& request, Body body) {
  replay::ByteReader in(body);
  const auto id = in.take<std::uint32_t>();
  if (!in.finished()) return malformed("info request");
  if (id != kAllTables && find(id) == nullptr) return no_table(id);
  reply(request.peer, json_reply(request, id == kAllTables ? info() : table_info(*find(id))));
  return std::nullopt;
}

// u32 table
ReplayService::Outcome ReplayService::checkpoint(const Request& request, Body body) {
  replay::ByteReader in(body);
  const auto id = in.take<std::uint32_t>();
  if (!in.finished()) return malformed("checkpoint request");
  HostedTable* table = find(id);
  if (table == nullptr) return no_table(id);
  if (options_.checkpoint_directory.empty())
    return ServiceFailure{ServiceErrorCode::kInvalidArgument,
                          "the service was started without --checkpoint-directory"};
  const auto started = table->add_checkpoint(request, checkpoint_path(table->name()));
  if (!started) return failure_of(started.error());
  ++peers_[request.peer].under_way(request.kind);
  return std::nullopt;
}

// u32 table | u32 worker
ReplayService::Outcome ReplayService::end_writer(const Request& request, Body body) {
  replay::ByteReader in(body);
  const auto id = in.take<std::uint32_t>(), worker = in.take<std::uint32_t>();
  if (!in.finished()) return malformed("end of a writer");
  HostedTable* table = find(id);
  if (table == nullptr) return no_table(id);
  table->end_writer(worker);
  reply(request.peer, words_reply(request, {}));
  return std::nullopt;
}

// u32 process | u32 descriptor | u32 slots | u32 zero | u64 bytes of a slot
ReplayService::Outcome ReplayService::share_memory(const Request& request, Body body) {
  replay::ByteReader in(body);
  const auto process = in.take<std::uint32_t>(), descriptor = in.take<std::uint32_t>();
  const auto slots = in.take<std::uint32_t>();
  in.take<std::uint32_t>();
  const auto slot_bytes = in.take<std::uint64_t>();
  if (!in.finished()) return malformed("description of shared memory");
  auto memory = SharedSlots::open(process, descriptor, slots, slot_bytes);
  if (!memory) return failure_of(memory.error());
  peers_[request.peer].memory = *std::move(memory);
  reply(request.peer, words_reply(request, {}));
  return std::nullopt;
}

}  // namespace troupe::actors
