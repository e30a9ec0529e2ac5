// Precompiled for the roles: CAF's and the JSON library's headers are most of what these files
// compile.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "actors/messages/interfaces.hpp"
