// Who is in sync with whom, and options that do not go together.
#include "learners/replicas/layout.hpp"

#include <gtest/gtest.h>

namespace troupe::learners {
namespace {

std::string refusal(const ReplicationOptions& options, int process, int processes) {
  const Result<ReplicaLayout> layout = replica_layout(options, process, processes);
  EXPECT_FALSE(layout);
  return layout ? "" : layout.error().message;
}

TEST(ReplicaLayout, IsOneGroupUnlessSaidOtherwise) {
  const ReplicaLayout one = *replica_layout({}, 0, 1);
  EXPECT_EQ(one.replicas, 1);
  EXPECT_EQ(one.groups, 1);
  EXPECT_EQ(one.servers, 0);
  const ReplicaLayout many = *replica_layout({.replicas = 3, .batch = 60}, 1, 2);
  EXPECT_EQ(many.replicas, 6);
  EXPECT_EQ(many.group_size, 6);
  EXPECT_EQ(many.first_replica(), 3);
  EXPECT_EQ(many.replica_rows, 10);
  EXPECT_TRUE(many.groups_span_processes());
  EXPECT_EQ(many.processes_per_group(), 2);
}

TEST(ReplicaLayout, PutsGroupsIntoProcessesOrProcessesIntoGroups) {
  // Two groups in each of two processes of four.
  const ReplicaLayout inside = *replica_layout({.replicas = 4, .batch = 8, .sync_groups = 4}, 1, 2);
  EXPECT_EQ(inside.group_size, 2);
  EXPECT_FALSE(inside.groups_span_processes());
  EXPECT_EQ(inside.group_of(4), 2);
  EXPECT_EQ(inside.servers, 1);
  EXPECT_EQ(inside.replica_rows, 4);
  // Two groups of two processes each.
  const ReplicaLayout across = *replica_layout({.replicas = 2, .sync_groups = 2}, 2, 4);
  EXPECT_EQ(across.group_size, 4);
  EXPECT_EQ(across.processes_per_group(), 2);
  EXPECT_EQ(across.group_of(across.first_replica()), 1);
  // With servers alone every replica is on its own.
  EXPECT_EQ(replica_layout({.replicas = 2, .parameter_servers = 3}, 0, 2)->groups, 4);
}

TEST(ReplicaLayout, RefusesGradientOptionsThatServersWouldIgnore) {
  ReplicationOptions options{.replicas = 2, .parameter_servers = 1};
  options.bucket_bytes = 4096;
  EXPECT_NE(refusal(options, 0, 1).find("bucket_bytes"), std::string::npos);
  options.bucket_bytes = 0;
  options.gradients = "bf16";
  EXPECT_NE(refusal(options, 0, 1).find("gradients"), std::string::npos);
}

TEST(ReplicaLayout, SaysWhatDoesNotGoTogether) {
  EXPECT_EQ(refusal({.replicas = 3, .batch = 10}, 0, 1),
            "A batch of 10 rows cannot be divided over 3 replicas in sync.");
  EXPECT_NE(refusal({.replicas = 3, .sync_groups = 2}, 0, 1).find("2 equal groups"),
            std::string::npos);
  EXPECT_NE(refusal({.replicas = 2, .sync_groups = 2}, 0, 3).find("must divide"),
            std::string::npos);
  EXPECT_NE(refusal({.replicas = 2, .inputs = "one", .sync_groups = 2}, 0, 1).find("in sync"),
            std::string::npos);
  EXPECT_NE(refusal({}, 2, 2).find("no process 2"), std::string::npos);
  EXPECT_NE(refusal({.logical_devices = {}}, 0, 1).find("logical device"), std::string::npos);
}

}  // namespace
}  // namespace troupe::learners
