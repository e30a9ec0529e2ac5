// Which versions this program is made of. Pure, any thread.
#pragma once

#include <map>
#include <string>

namespace troupe::actors {

// Troupe and every library it uses, by name. LibTorch's is the one it was built beside; it is
// loaded only by nodes that learn.
std::map<std::string, std::string> library_versions();

// "troupe 0.1.0", then one line per library.
std::string version_text();

}  // namespace troupe::actors
