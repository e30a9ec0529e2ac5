// Asks a run's coordinator for more nodes: scale_client PORT RUN_ID ROLE COUNT. Prints the answer;
// exit code 1 when it is a refusal or none came.
#include <caf/actor_system.hpp>
#include <caf/io/remote_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <cstdio>
#include <cstdlib>

#include "actors/messages/interfaces.hpp"
#include "actors/runtime/system.hpp"

using namespace troupe::actors;

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  System system({.run = argv[2]}, [](caf::actor_system_config& config) {
    config.add_message_types<caf::id_block::troupe>();
  });
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  // It is published without its type, for whoever connects.
  const auto published = caf::io::remote_actor<caf::actor>(system.get(), "127.0.0.1", port);
  int code = 1;
  std::string said = "the coordinator cannot be reached";
  if (published) {
    const auto coordinator = caf::actor_cast<CoordinatorActor>(*published);
    caf::scoped_actor self(system.get());
    self->request(coordinator, std::chrono::seconds(20),
                  ScaleRequest{argv[3], static_cast<std::uint32_t>(std::atoi(argv[4]))})
        .receive(
            [&](const std::string& done) {
              said = done;
              code = 0;
            },
            [&](const caf::error& error) { said = system.get().render(error); });
  }
  std::puts(said.c_str());
  std::fflush(stdout);
  std::_Exit(code);  // nothing needs tearing down
}
