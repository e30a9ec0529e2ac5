// A cluster's own certificate authority, and the bundles that it issues to hosts. OpenSSL, Ed25519.
//
// The authority's folder (0700):          A host's bundle, copied to that host (0700):
//   authority.pem  authority.key            authority.pem    whom to trust
//   worker.curve   watch.curve              certificate.pem  certificate.key
//   curve.public                            curve.public     curve.key
//
// A certificate names its host, the addresses by which it is reached, and its roles. ZeroMQ's CURVE
// knows bare keys, so there are two pairs for the whole cluster, made with the authority: hosts
// that may be a coordinator or a worker hold the one of workers, all others that of watchers, which
// opens telemetry alone. So every host knows every key, also of hosts that get theirs later, and a
// bundle that is lost means a new authority. Files *.key and *.curve are secret (0600). Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"

struct x509_st;

namespace troupe::actors {

// What the holder of a certificate may do.
inline constexpr const char* kCoordinatorRole = "coordinator";  // others may join it there
inline constexpr const char* kWorkerRole = "worker";            // may join runs
inline constexpr const char* kControlRole = "control";          // may scale, drain and stop runs
inline constexpr const char* kWatchRole = "watch";              // may read telemetry
const std::vector<std::string>& certificate_roles();

inline constexpr const char* kAuthorityFile = "authority.pem";
inline constexpr const char* kAuthorityKey = "authority.key";
inline constexpr const char* kCertificateFile = "certificate.pem";
inline constexpr const char* kCertificateKey = "certificate.key";
inline constexpr const char* kCurvePublicFile = "curve.public";
inline constexpr const char* kCurveKey = "curve.key";

struct CertificateRequest {
  std::string name;                    // of the host; also of its bundle's folder
  std::vector<std::string> addresses;  // DNS names and numeric addresses; none: the name alone
  std::vector<std::string> roles{kWorkerRole};
  // A little in the past, because clocks of hosts differ.
  std::chrono::seconds begins = -std::chrono::hours(1), lasts = std::chrono::hours(365 * 24);
};

struct CertificateInfo {
  std::string name, authority;
  std::vector<std::string> addresses, roles;
  std::int64_t not_before = 0, not_after = 0;  // Unix seconds
  std::string fingerprint;                     // SHA-256, hexadecimal

  bool has_role(const std::string& role) const;
};

// Makes the folder and its authority. kInvalidArgument: there is one already.
Result<void> init_authority(const std::filesystem::path& folder, const std::string& cluster,
                            std::chrono::seconds lasts);
// Writes a bundle into `bundle`, a folder that is new or holds none. Errors name what of the
// request cannot be.
Result<void> issue_certificate(const std::filesystem::path& authority,
                               const CertificateRequest& request,
                               const std::filesystem::path& bundle);
// Of a file in PEM. kCorrupt: it is none.
Result<CertificateInfo> read_certificate(const std::filesystem::path& file);
CertificateInfo describe_certificate(x509_st* certificate);

// "2027-11-30 18:40:00 UTC".
std::string utc_time(std::int64_t unix_seconds);

}  // namespace troupe::actors
