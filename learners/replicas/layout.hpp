// Who is in sync with whom: replicas, groups and processes, from the options alone. Pure functions,
// torch-free.
#pragma once

#include "envs/spec/result.hpp"
#include "learners/replicas/options.hpp"

namespace troupe::learners {

// Replica ids run through the processes; a group is a run of ids. Either a group spans whole
// processes or a process holds whole groups.
struct ReplicaLayout {
  int process = 0, processes = 1;
  int local = 1;                   // replicas of this process, and of every other one
  int replicas = 1;                // in all
  int groups = 1, group_size = 1;  // replicas in sync
  int servers = 0;                 // parameter servers; 0: no group is asynchronous to another
  std::int64_t replica_rows = 0;   // of a step's inputs: batch / group_size

  int first_replica() const { return process * local; }
  int group_of(int replica) const { return replica / group_size; }
  bool groups_span_processes() const { return group_size > local; }
  int processes_per_group() const { return groups_span_processes() ? group_size / local : 1; }
};

// kInvalidArgument says which numbers do not go together: every process finds the same.
Result<ReplicaLayout> replica_layout(const ReplicationOptions& options, int process, int processes);

}  // namespace troupe::learners
