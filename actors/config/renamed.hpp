// Keys that Troupe does not have but that people write: former names of its own, and the names
// other systems use. Each is either honoured under its present name, with a note, or refused by
// name; never dropped. Constant data, any thread.
#pragma once

#include <span>
#include <string_view>

namespace troupe::actors {

struct RenamedKey {
  std::string_view key;      // as written, dotted
  std::string_view present;  // the key that has its meaning now; empty: none has
  bool honoured = false;     // true: read into `present`; needs a `present`
  std::string_view reason;   // one clause for the message, may be empty
};

inline constexpr RenamedKey kRenamedKeys[] = {
    {"d4pg.batch_size", "d4pg.batch", false, ""},
    {"d4pg.gamma", "d4pg.discount", false, ""},
    {"d4pg.lr", "d4pg.learning_rate", false, ""},
    {"d4pg.num_atoms", "d4pg.atoms", false, ""},
    {"d4pg.target_update_period", "d4pg.target_period", false, ""},
    {"env", "environment.name", false, "the environment is a section"},
    {"replay.spi", "replay.samples_per_insert", false, ""},
    {"replay.max_size", "replay.capacity", false, ""},
    {"replay.rate_limiter", "replay.samples_per_insert", false,
     "the limiter follows from min_size, samples_per_insert and error_buffer"},
    {"actors.num_envs", "actors.environments", false, ""},
    {"stop.total_steps", "stop.actor_steps", false, ""},
};

}  // namespace troupe::actors
