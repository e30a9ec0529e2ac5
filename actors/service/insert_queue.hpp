// Chunks for one table, or for several that take them together, in order of arrival: they wait
// until the limiters of all the tables let them pass. Belongs to the service's thread.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "actors/service/hosted_table.hpp"
#include "replay/table_group.hpp"

namespace troupe::actors {

class InsertQueue {
 public:
  // The tables outlive it. kInvalidArgument when they cannot be fed together (TableGroup::of).
  static Result<InsertQueue> of(std::vector<HostedTable*> tables);

  // A chunk that is waiting already (sent again by its writer) only changes whom to answer, and
  // under which number; returns whether it was so. kUnavailable when a table has seen too many
  // writers.
  Result<bool> add(const Request& request, replay::ChunkPtr chunk);
  // Answers the first chunk if the tables take or refuse it now; false: it waits, or there is none.
  bool serve_one(Answers& answers);
  // Forgets what a peer waits for; returns how many chunks that were.
  std::size_t forget(const std::string& peer);

  const std::vector<HostedTable*>& tables() const { return tables_; }
  bool feeds(const HostedTable& table) const;
  std::size_t size() const { return inserts_.size(); }
  // Why the first one waits, as of the last serve_one.
  const std::string& blocked() const { return blocked_; }

 private:
  struct Insert {
    Request from;
    replay::ChunkPtr chunk;
  };

  InsertQueue(std::vector<HostedTable*> tables, replay::TableGroup group)
      : tables_(std::move(tables)), group_(std::move(group)) {}

  std::vector<HostedTable*> tables_;
  replay::TableGroup group_;
  std::deque<Insert> inserts_;
  std::string blocked_;
};

}  // namespace troupe::actors
