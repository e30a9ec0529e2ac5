// See permissions.hpp.
#include "actors/messages/permissions.hpp"

#include <initializer_list>
#include <utility>

#include "actors/messages/messages.hpp"

namespace troupe::actors {
namespace {

// Answers and CAF's own greeting between nodes consist of these.
constexpr std::initializer_list<const char*> kPlain{"@atom",  "@str",  "@strong_actor_ptr",
                                                    "@error", "@unit", "bool",
                                                    "@i8",    "@u8",   "@i16",
                                                    "@u16",   "@i32",  "@u32",
                                                    "@i64",   "@u64"};

// A new message that takes something away from a run belongs here.
constexpr std::initializer_list<const char*> kControl{"troupe::actors::ControlRequest",
                                                      "troupe::actors::ScaleRequest",
                                                      "troupe::actors::StopRequest"};

template <caf::type_id_t... kOffsets>
MessageTypes block_types(std::integer_sequence<caf::type_id_t, kOffsets...>) {
  return {caf::type_name_by_id<caf::id_block::troupe::begin + kOffsets>::value...};
}

MessageTypes all_types() {
  constexpr auto kCount =
      static_cast<caf::type_id_t>(caf::id_block::troupe::end - caf::id_block::troupe::begin);
  MessageTypes types = block_types(std::make_integer_sequence<caf::type_id_t, kCount>());
  types.insert(kPlain.begin(), kPlain.end());
  return types;
}

}  // namespace

const MessageTypes& worker_message_types() {
  static const MessageTypes types = [] {
    MessageTypes some = all_types();
    for (const char* type : kControl) some.erase(type);
    return some;
  }();
  return types;
}

const MessageTypes& control_message_types() {
  static const MessageTypes types = all_types();
  return types;
}

}  // namespace troupe::actors
