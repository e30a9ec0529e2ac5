// What may face other hosts.
#include "actors/config/cluster_checks.hpp"

#include <gmock/gmock.h>

#include "tests/actors/config/checked_options.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

TEST(ClusterChecks, LoopbackNeedsNoCertificates) {
  RunOptions options = good_options();
  for (const char* listen : {"", "127.0.0.1:*", "[::1]:7700", "localhost:7700"}) {
    options.cluster.listen = listen;
    EXPECT_EQ(error(options), "accepted") << listen;
  }
}

TEST(ClusterChecks, WhatOtherHostsReachNeedsCertificatesOrAnExplicitWord) {
  RunOptions listens = good_options(), tells = good_options();
  listens.cluster.listen = "0.0.0.0:7700";
  tells.telemetry.endpoint = "tcp://10.0.0.1:*";
  for (RunOptions* options : {&listens, &tells}) {
    EXPECT_THAT(error(*options), HasSubstr("can be reached from other hosts"));
    EXPECT_THAT(error(*options), HasSubstr("cluster.insecure: true"));
    EXPECT_TRUE(security_warnings(*options).empty());
    options->cluster.certificates = "certificates/head";
    EXPECT_EQ(error(*options), "accepted");
    options->cluster.certificates.clear();
    options->cluster.insecure = true;
    EXPECT_EQ(error(*options), "accepted");
    ASSERT_EQ(security_warnings(*options).size(), 1u);
    EXPECT_THAT(security_warnings(*options)[0], HasSubstr("neither encrypted nor guarded"));
  }
}

TEST(ClusterChecks, ContradictionsAreNamed) {
  RunOptions options = good_options();
  options.cluster.listen = "7700";
  EXPECT_THAT(error(options), HasSubstr("write ADDRESS:PORT"));
  options.cluster.listen = "";
  options.cluster.advertise = "head";
  EXPECT_THAT(error(options), HasSubstr("cluster.listen is not set"));
  options.cluster = {.listen = "0.0.0.0:1", .advertise = {}, .certificates = "c", .insecure = true};
  EXPECT_THAT(error(options), HasSubstr("cluster.insecure has no effect"));
}

}  // namespace
}  // namespace troupe::actors
