// See addresses.hpp.
#include "actors/runtime/addresses.hpp"

#include <charconv>

namespace troupe::actors {

bool is_loopback_host(std::string_view host) {
  if (host == "localhost" || host == "[::1]" || host == "::1") return true;
  // In digits: "127.example.org" is a name like any other.
  return host.starts_with("127.") &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_loopback(const std::string& endpoint) {
  if (!endpoint.starts_with("tcp://")) return true;
  const std::string_view address = std::string_view(endpoint).substr(6);
  return is_loopback_host(address.substr(0, address.rfind(':')));
}

std::optional<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return std::nullopt;  // IPv6 without brackets
  HostPort parsed{std::string(host), 0};
  if (host.empty() || host.find_first_of(" /\t\n") != std::string_view::npos) return std::nullopt;
  if (port == "*") return parsed;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), parsed.port);
  if (error != std::errc() || end != port.data() + port.size() || parsed.port == 0)
    return std::nullopt;
  return parsed;
}

}  // namespace troupe::actors
