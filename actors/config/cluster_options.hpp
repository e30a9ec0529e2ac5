// What a run is told about other hosts.
#pragma once

#include <string>

#include "envs/spec/options.hpp"

namespace troupe::actors {

struct ClusterOptions {
  std::string listen, advertise, certificates;
  bool insecure = false;
  Duration coordinator_grace{60000};
};

template <class Visitor>
void describe(Visitor& visitor, ClusterOptions& options) {
  visitor.field("listen", options.listen,
                "HOST:PORT where other hosts join the run, * for any free port (printed at the "
                "start); empty: none can.");
  visitor.field("advertise", options.advertise,
                "Address of this host that others reach it at, where listen names all; empty: the "
                "one of listen.");
  visitor.field("certificates", options.certificates,
                "Folder of this host's certificate, of `troupe certificates issue`; whatever other "
                "hosts can reach is encrypted and lets in holders of the cluster's certificates "
                "only. Empty: none.");
  visitor.field(
      "insecure", options.insecure,
      "Lets other hosts reach the run without certificates: whoever does can read, change "
      "and end it.");
  visitor.field("coordinator_grace", options.coordinator_grace, between(1000, 86400000),
                "How long hosts that joined wait for the run to be started again.");
}

}  // namespace troupe::actors
