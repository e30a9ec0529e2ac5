// Addresses as users write them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::actors {

// Whether only this host reaches it: 127.0.0.0/8 in digits, ::1, localhost.
bool is_loopback_host(std::string_view host);
// The same of a ZeroMQ endpoint; ipc and inproc never leave the host.
bool is_loopback(const std::string& endpoint);

struct HostPort {
  std::string host;        // without the brackets of IPv6
  std::uint16_t port = 0;  // 0: written as *, any free one
};
// "HOST:PORT", "[::1]:7700", "0.0.0.0:*"; nullopt: neither.
std::optional<HostPort> parse_host_port(std::string_view text);

}  // namespace troupe::actors
