// The service's tables: whether there is room for one more, what it is restored from, and where all
// of them are saved.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "actors/service/replay_service.hpp"
#include "replay/checkpoint.hpp"
#include "replay/table_group.hpp"

namespace troupe::actors {
namespace {

constexpr std::size_t kMaxTables = 64;

std::uint64_t physical_memory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Payload of a table that holds its capacity, every step once.
double payload_mib(const replay::Signature& signature, const replay::TableOptions& options) {
  using Kind = replay::ItemShape::Kind;
  const replay::ItemShape& shape = options.items;
  const std::uint32_t steps = shape.kind == Kind::kEpisode    ? shape.length
                              : shape.kind == Kind::kSequence ? shape.period
                                                              : 1;
  const double full = static_cast<double>(step_bytes(signature)) *
                      static_cast<double>(options.capacity) * steps / (1 << 20);
  if (options.capacity_bytes == 0) return full;
  return std::min(full, static_cast<double>(options.capacity_bytes) / (1 << 20));
}

// Records and selectors of a full table: what stays in memory with a disk tier.
double records_mib(const replay::TableOptions& options) {
  constexpr double kItem = 32;  // bytes
  return kItem * static_cast<double>(options.capacity) / (1 << 20);
}

}  // namespace

Result<void> ReplayService::check_room(const TableRequest& request) const {
  if (tables_.size() >= kMaxTables)
    return fail(ErrorCode::kUnavailable,
                "there are " + std::to_string(kMaxTables) + " tables already");
  const bool on_disk = !options_.disk_folder.empty();
  double payload = payload_mib(request.signature, request.options);
  double records = records_mib(request.options);
  for (const auto& table : tables_) {
    payload += payload_mib(table->table().signature(), table->table().options());
    records += records_mib(table->table().options());
  }
  const auto refuse = [&](const char* where, double needed, double limit) {
    return fail(ErrorCode::kInvalidArgument,
                "with table '" + request.name + "' (" + std::to_string(request.options.capacity) +
                    " items of " + std::to_string(step_bytes(request.signature)) +
                    " bytes) all tables would need " + std::to_string(static_cast<long>(needed)) +
                    " MiB " + where + " when full, more than the " +
                    std::to_string(static_cast<long>(limit)) +
                    " MiB allowed; capacity or capacity_bytes bound a table");
  };
  if (const auto disk = static_cast<double>(options_.disk_mib); on_disk && payload > disk)
    return refuse("of disk", payload, disk);
  const double limit = options_.max_table_mib > 0
                           ? static_cast<double>(options_.max_table_mib)
                           : 0.75 * static_cast<double>(physical_memory() >> 20);
  const double memory = on_disk ? records : payload;
  if (memory > limit) return refuse("of memory", memory, limit);
  return {};
}

// A table's content, sharing what other tables have just the same.
Result<std::vector<std::string>> ReplayService::restore(replay::Table& table,
                                                        const std::filesystem::path& path) const {
  auto snapshot = replay::read_checkpoint(path, table.signature(), storage_.get());
  if (!snapshot) return tl::unexpected(snapshot.error());
  for (const auto& other : tables_)
    if (other->table().signature() == table.signature())
      replay::share_chunks(*snapshot, other->table().snapshot());
  auto notes = table.adopt(*std::move(snapshot));
  if (!notes) return fail(notes.error().code, path.string() + ": " + notes.error().message);
  return notes;
}

Result<std::vector<std::string>> ReplayService::add_table(const TableRequest& request) {
  if (auto room = check_room(request); !room) return tl::unexpected(room.error());
  // Keys from before this start name nothing here, whatever was restored.
  replay::TableOptions options = request.options;
  options.shard_epoch = static_cast<std::uint32_t>(session_);
  auto table = replay::Table::create(options, request.signature, storage_);
  if (!table) return tl::unexpected(table.error());
  std::vector<std::string> notes;
  const auto path = checkpoint_path(request.name);
  if (std::error_code error; !path.empty() && std::filesystem::exists(path, error)) {
    auto restored = restore(**table, path);
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

}  // namespace troupe::actors
