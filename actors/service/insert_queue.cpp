// Implements the waiting chunks.
#include "actors/service/insert_queue.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::actors {

Result<InsertQueue> InsertQueue::of(std::vector<HostedTable*> tables) {
  std::vector<replay::Table*> held;
  held.reserve(tables.size());
  for (HostedTable* table : tables) held.push_back(&table->table());
  auto group = replay::TableGroup::of(std::move(held));
  if (!group) return tl::unexpected(group.error());
  return InsertQueue(std::move(tables), *std::move(group));
}

Result<bool> InsertQueue::add(const Request& request, replay::ChunkPtr chunk) {
  const replay::ChunkHeader& header = chunk->header;
  for (Insert& waiting : inserts_) {
    const replay::ChunkHeader& other = waiting.chunk->header;
    if (other.worker == header.worker && other.incarnation == header.incarnation &&
        other.sequence == header.sequence) {
      waiting.from = request;
      return true;
    }
  }
  for (HostedTable* table : tables_)
    if (auto good = table->meet_writer(header.worker); !good) return tl::unexpected(good.error());
  inserts_.push_back({request, std::move(chunk)});
  return false;
}

bool InsertQueue::serve_one(Answers& answers) {
  if (inserts_.empty()) return false;
  const Insert& first = inserts_.front();
  const replay::InsertOutcome outcome = group_.try_insert(first.chunk);
  using Kind = replay::InsertOutcome::Kind;
  if (outcome.kind == Kind::kWouldBlock) {
    blocked_ = outcome.error.message;
    return false;
  }
  ChannelMessage message;
  if (outcome.kind == Kind::kRefused) {
    message =
        error_reply(first.from.id, {service_code_of(outcome.error.code), outcome.error.message});
  } else {
    const std::array<std::uint64_t, 2> words{outcome.kind == Kind::kDuplicate ? 1U : 0U,
                                             outcome.items};
    message = words_reply(first.from, words);
  }
  answers.push_back({first.from, std::move(message)});
  inserts_.pop_front();
  return true;
}

std::size_t InsertQueue::forget(const std::string& peer) {
  return std::erase_if(inserts_, [&](const Insert& waiting) { return waiting.from.peer == peer; });
}

bool InsertQueue::feeds(const HostedTable& table) const {
  return std::find(tables_.begin(), tables_.end(), &table) != tables_.end();
}

}  // namespace troupe::actors
