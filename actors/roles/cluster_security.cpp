// See cluster_security.hpp.
#include "actors/roles/cluster_security.hpp"

#include <cstdlib>

#include "actors/messages/permissions.hpp"
#include "actors/runtime/addresses.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/system.hpp"

namespace troupe::actors {
namespace {

std::string application() { return "troupe/" + std::to_string(kProtocolVersion); }

}  // namespace

Result<ClusterSecurity> use_certificates(const std::string& folder) {
  ClusterSecurity security;
  if (folder.empty()) return security;
  auto tls = TlsCredentials::load(folder, application());
  if (!tls) return tl::unexpected(tls.error());
  auto curve = load_curve_keys(folder);
  if (!curve) return tl::unexpected(curve.error());
  security.tls = std::move(*tls);
  security.curve = std::make_shared<const CurveKeys>(std::move(*curve));
  set_process_curve_keys(security.curve);
  return security;
}

std::string certificates_folder(const ClusterOptions& options) {
  const char* named = std::getenv(kCertificatesVariable);
  return named != nullptr && *named != '\0' ? named : options.certificates;
}

Result<std::unique_ptr<TlsRelay>> open_relay(const ClusterOptions& options,
                                             const ClusterSecurity& security,
                                             std::uint16_t coordinator_port) {
  const auto listen = parse_host_port(options.listen);
  if (!listen)
    return fail(ErrorCode::kInvalidArgument,
                "cluster.listen '" + options.listen + "' is not ADDRESS:PORT");
  if (!security.tls)
    return fail(ErrorCode::kInvalidArgument,
                "there are no certificates to guard cluster.listen " + options.listen + " with");
  return TlsRelay::open({.host = listen->host,
                         .port = listen->port,
                         .backend = coordinator_port,
                         .credentials = security.tls,
                         .roles = {{kControlRole, &control_message_types()},
                                   {kCoordinatorRole, &worker_message_types()},
                                   {kWorkerRole, &worker_message_types()}},
                         .warn = [](const std::string& line) { log_warning("relay", line); }});
}

TlsDialerOptions dialer_options(const std::string& host, std::uint16_t port,
                                const ClusterSecurity& security) {
  return {
      .host = host, .port = port, .credentials = security.tls, .warn = [](const std::string& line) {
        log_warning("relay", line);
      }};
}

}  // namespace troupe::actors
