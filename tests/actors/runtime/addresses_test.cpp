// What counts as this host, and what is an address.
#include "actors/runtime/addresses.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

TEST(Addresses, OnlyThisHostReachesLoopback) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "localhost", "::1", "[::1]"})
    EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host :
       {"0.0.0.0", "*", "127.example.org", "10.0.0.1", "localhost.example.org", "::", ""})
    EXPECT_FALSE(is_loopback_host(host)) << host;
  for (const char* endpoint : {"ipc:///tmp/x", "inproc://x", "tcp://127.0.0.1:*", "tcp://[::1]:5"})
    EXPECT_TRUE(is_loopback(endpoint)) << endpoint;
  for (const char* endpoint : {"tcp://*:5", "tcp://127.0.0.1.example.org:5", "tcp://eth0:5"})
    EXPECT_FALSE(is_loopback(endpoint)) << endpoint;
}

TEST(Addresses, HostAndPortAreTakenApart) {
  EXPECT_EQ(parse_host_port("node.example.org:7700")->host, "node.example.org");
  EXPECT_EQ(parse_host_port("node:7700")->port, 7700);
  EXPECT_EQ(parse_host_port("0.0.0.0:*")->port, 0);
  EXPECT_EQ(parse_host_port("[fe80::1]:80")->host, "fe80::1");
  for (const char* text :
       {"", ":1", "a", "a:", "a:0", "a:65536", "a:1x", "::1:80", "a b:1", "tcp://a:1", "[]:1"})
    EXPECT_FALSE(parse_host_port(text).has_value()) << text;
}

}  // namespace
}  // namespace troupe::actors
