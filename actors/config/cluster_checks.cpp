// What may face other hosts: with certificates, or by an explicit word.
#include "actors/config/cluster_checks.hpp"

#include "actors/runtime/addresses.hpp"

namespace troupe::actors {
namespace {

// Keys of what other hosts could reach, with their values.
std::vector<std::string> exposed(const RunOptions& options) {
  std::vector<std::string> keys;
  const auto listen = parse_host_port(options.cluster.listen);
  if (listen && !is_loopback_host(listen->host))
    keys.push_back("cluster.listen " + options.cluster.listen);
  if (!is_loopback(options.telemetry.endpoint))
    keys.push_back("telemetry.endpoint " + options.telemetry.endpoint);
  return keys;
}

}  // namespace

void check_cluster(const RunOptions& options, std::vector<std::string>& lines) {
  const ClusterOptions& cluster = options.cluster;
  if (!cluster.listen.empty() && !parse_host_port(cluster.listen))
    lines.push_back("cluster.listen is \"" + cluster.listen +
                    "\"; write ADDRESS:PORT with a port of 1 to 65535, or * for any free one");
  if (!cluster.advertise.empty() && cluster.listen.empty())
    lines.push_back("cluster.advertise is " + cluster.advertise +
                    ", but cluster.listen is not set, so nobody can join there");
  if (cluster.insecure && !cluster.certificates.empty())
    lines.push_back("cluster.insecure has no effect with cluster.certificates " +
                    cluster.certificates + ", which secure the run; remove one of them");
  if (cluster.insecure || !cluster.certificates.empty()) return;
  for (const std::string& key : exposed(options))
    lines.push_back(key +
                    " can be reached from other hosts, and cluster.certificates is not set; make "
                    "some with `troupe certificates init` and `issue`, or accept that anybody can "
                    "read, change and end the run with cluster.insecure: true");
}

std::vector<std::string> security_warnings(const RunOptions& options) {
  std::vector<std::string> warnings;
  if (!options.cluster.insecure) return warnings;
  for (const std::string& key : exposed(options))
    warnings.push_back(key + " is neither encrypted nor guarded (cluster.insecure): whoever " +
                       "reaches it can read, change and end the run");
  return warnings;
}

}  // namespace troupe::actors
