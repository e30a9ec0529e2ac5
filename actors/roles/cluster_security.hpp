// The cluster's certificates as the parts of a run use them: one call each for the process that
// other hosts join, for a host that joins, and for every process with channels.
#pragma once

#include <memory>
#include <string>

#include "actors/config/cluster_options.hpp"
#include "actors/runtime/curve_keys.hpp"
#include "actors/runtime/tls_dialer.hpp"
#include "actors/runtime/tls_relay.hpp"

namespace troupe::actors {

// Names a folder of certificates in a process's environment; wins over cluster.certificates, which
// is a path of the coordinator's host.
inline constexpr const char* kCertificatesVariable = "TROUPE_CERTIFICATES";

struct ClusterSecurity {
  std::shared_ptr<const TlsCredentials> tls;  // both null: the run has no certificates
  std::shared_ptr<const CurveKeys> curve;
};

// Reads the folder, if one is named, and from then on encrypts this process's channels that other
// hosts can reach. Errors name the file and what is wrong with it.
Result<ClusterSecurity> use_certificates(const std::string& folder);
// The folder that counts for a process of a run with these options; empty: none.
std::string certificates_folder(const ClusterOptions& options);

// In front of the loopback port where the coordinator is published: who has the role worker may
// join, who has the role control may also send what ends or scales the run. `options.listen` is
// set.
Result<std::unique_ptr<TlsRelay>> open_relay(const ClusterOptions& options,
                                             const ClusterSecurity& security,
                                             std::uint16_t coordinator_port);
// The way of a joining host to such a relay; `host` as the relay's certificate has it. Probe first:
// probe_relay(dialer_options(...)) says by name why it would not work.
TlsDialerOptions dialer_options(const std::string& host, std::uint16_t port,
                                const ClusterSecurity& security);

}  // namespace troupe::actors
