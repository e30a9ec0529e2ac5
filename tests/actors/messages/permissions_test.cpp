// What a worker's certificate lets through, against CAF's own names of the types.
#include "actors/messages/permissions.hpp"

#include <gmock/gmock.h>

#include "actors/messages/messages.hpp"

namespace troupe::actors {
namespace {

using testing::Contains;
using testing::Not;

TEST(Permissions, WorkersSendEverythingButWhatTakesSomethingAway) {
  for (const char* type : {"troupe::actors::Hello", "troupe::actors::Report",
                           "std::vector<troupe::actors::FilePart>", "@strong_actor_ptr", "@str"})
    EXPECT_THAT(worker_message_types(), Contains(type));
  EXPECT_THAT(worker_message_types(), Not(Contains("troupe::actors::StopRequest")));
  EXPECT_THAT(worker_message_types(), Not(Contains("troupe::actors::ControlRequest")));
  EXPECT_LT(worker_message_types().size(), control_message_types().size())
      << "control messages are called something else now";
}

TEST(Permissions, NobodySendsWhatEndsAnActorOrMessagesInMessages) {
  for (const char* type : {"@exit", "@down", "@message", "@group"})
    EXPECT_THAT(control_message_types(), Not(Contains(type)));
}

// Names as the actor system knows them, of every type that is registered for the wire.
TEST(Permissions, TheNamesAreThoseOfTheWire) {
  caf::actor_system_config config;
  config.add_message_types<caf::id_block::troupe>();
  int own = 0;
  for (const auto& [name, factory] : config.value_factories_by_name) {
    if (!name.starts_with("troupe::")) continue;
    EXPECT_TRUE(control_message_types().contains(name)) << name;
    ++own;
  }
  EXPECT_GT(own, 20);
}

}  // namespace
}  // namespace troupe::actors
