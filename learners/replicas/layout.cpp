// Implements the layout and its refusals.
#include "learners/replicas/layout.hpp"

#include <algorithm>

namespace troupe::learners {
namespace {

tl::unexpected<Error> refuse(const std::string& why) {
  return fail(ErrorCode::kInvalidArgument, why);
}
std::string text(std::int64_t number) { return std::to_string(number); }

}  // namespace

Result<ReplicaLayout> replica_layout(const ReplicationOptions& options, int process,
                                     int processes) {
  if (processes < 1 || process < 0 || process >= processes)
    return refuse("There is no process " + text(process) + " of " + text(processes) + ".");
  if (options.replicas < 1) return refuse("A process needs at least one replica.");
  if (options.logical_devices.empty())
    return refuse("A replica needs at least one logical device.");
  ReplicaLayout layout{
      .process = process, .processes = processes, .local = static_cast<int>(options.replicas)};
  layout.replicas = layout.local * processes;
  const bool asynchronous = options.sync_groups > 1 || options.parameter_servers > 0;
  layout.groups = options.sync_groups > 0 ? static_cast<int>(options.sync_groups)
                  : asynchronous          ? layout.replicas
                                          : 1;
  if (layout.replicas % layout.groups != 0)
    return refuse(text(layout.replicas) + " replicas cannot form " + text(layout.groups) +
                  " equal groups.");
  layout.group_size = layout.replicas / layout.groups;
  if (layout.local % layout.group_size != 0 && layout.group_size % layout.local != 0)
    return refuse("Groups of " + text(layout.group_size) + " replicas do not fit processes of " +
                  text(layout.local) + ": one number must divide the other.");
  if (asynchronous)
    layout.servers = static_cast<int>(std::max<std::int64_t>(1, options.parameter_servers));
  if (asynchronous && (options.bucket_bytes > 0 || options.gradients != "f32"))
    return refuse(
        "Parameter servers take gradients whole and as f32: bucket_bytes and gradients "
        "are for replicas in sync.");
  if (options.batch % layout.group_size != 0)
    return refuse("A batch of " + text(options.batch) + " rows cannot be divided over " +
                  text(layout.group_size) + " replicas in sync.");
  layout.replica_rows = options.batch / layout.group_size;
  if (options.inputs == "one" && layout.groups > 1)
    return refuse("One input pipeline in all needs all replicas in sync; there are " +
                  text(layout.groups) + " groups.");
  return layout;
}

}  // namespace troupe::learners
