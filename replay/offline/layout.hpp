// The names in an episode file, for its writer and its readers. episode_writer.hpp explains them.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::replay::layout {

inline constexpr const char* kFormat = "troupe-episodes";
inline constexpr std::uint64_t kFormatVersion = 1;

inline constexpr const char* kActionColumn = "action";  // in a Signature
inline constexpr const char* kActions = "actions";
inline constexpr const char* kObservations = "observations";
inline constexpr const char* kRewards = "rewards";
inline constexpr const char* kTerminations = "terminations";
inline constexpr const char* kTruncations = "truncations";
inline constexpr const char* kExtras = "extras";
inline constexpr const char* kPolicies = "policies";
inline constexpr const char* kOpenStep = "open_step";

inline constexpr const char* kTotalEpisodes = "total_episodes";
inline constexpr const char* kTotalSteps = "total_steps";
inline constexpr const char* kFirstStep = "first_step";
inline constexpr const char* kEnd = "end";
inline constexpr const char* kTerminated = "terminated";
inline constexpr const char* kTruncated = "truncated";
inline constexpr const char* kOpen = "open";
inline constexpr const char* kActionUnits = "action_units";
inline constexpr const char* kPolicyUnits = "policy";

// D4RL's flat columns.
inline constexpr const char* kTerminals = "terminals";
inline constexpr const char* kTimeouts = "timeouts";
inline constexpr const char* kNextObservations = "next_observations";

// Of one episode: what a row number of 32 bits can count, with room to spare.
inline constexpr std::uint32_t kMostSteps = 1U << 30;

inline std::string episode_name(std::uint64_t index) { return "episode_" + std::to_string(index); }

}  // namespace troupe::replay::layout
