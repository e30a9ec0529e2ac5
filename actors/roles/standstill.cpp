// Implements the explanations of a standstill.
#include "actors/roles/standstill.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe::actors {
namespace {

using Node = StandstillView::Node;

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string seconds(std::uint64_t ms) { return std::to_string(ms / 1000) + " s"; }

// Of a node that does not serve.
std::string absence(const Node& node, const StandstillView& view) {
  if (node.state == "silent") return node.name + " does not answer (silent)";
  if (node.state == "restarting") return node.name + " died and is about to be started again";
  if (node.state == "ended") return node.name + " has ended and is not started again";
  if (node.state == "leaving") return node.name + " is leaving";
  const bool restores = node.state == "joined" && !view.restoring.empty();
  if (restores) return node.name + " is starting: it restores " + view.restoring;
  return node.name + " is starting (" + node.state + ")";
}

std::vector<std::string> absent(const StandstillView& view, const char* role) {
  std::vector<std::string> found;
  for (const Node& node : view.nodes)
    if (node.role == role && node.state != "ready") found.push_back(absence(node, view));
  return found;
}

// "actor-0, actor-1 wait on replay_credit; actor-2 waits on nothing"
std::string waits_of(const StandstillView& view, const char* role) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const Node& node : view.nodes)
    if (node.role == role && node.state == "ready") by_reason[node.waiting_on].push_back(node.name);
  std::vector<std::string> parts;
  for (const auto& [reason, names] : by_reason)
    parts.push_back(joined(names) + (names.size() > 1 ? " wait on " : " waits on ") +
                    (reason.empty() ? "nothing" : reason));
  std::string text;
  for (const std::string& part : parts) text += "; " + part;
  return text;
}

constexpr std::uint64_t kBusy = 1000;  // milliseconds; the shortest standstill that is looked for

std::string of_learner(const Node& learner, const StandstillView& view) {
  // What it last said that it waits for is old while it is inside a call.
  if (learner.busy_ms >= kBusy)
    return learner.name + " has been inside " + learner.busy_with + " for " +
           seconds(learner.busy_ms);
  const std::string& reason = learner.waiting_on;
  const std::string actors = waits_of(view, "environment") + waits_of(view, "data"),
                    shards = waits_of(view, "shard");
  if (contains(reason, "min_size"))
    return "the replay has not reached replay.min_size (" + reason + ")" + actors + shards;
  if (contains(reason, "sample waits for inserts"))
    return "the limiter holds samples back until more is inserted (" + reason + ")" + actors +
           shards;
  if (!reason.empty()) return learner.name + ": " + reason + actors + shards;
  return learner.name + " serves and says of nothing that it waits for it" + actors + shards;
}

std::string cause(const StandstillView& view) {
  if (!view.stopping.empty()) {
    std::vector<std::string> left;
    for (const Node& node : view.nodes)
      if (node.state != "ended") left.push_back(node.name + " (" + node.state + ")");
    return "the run is stopping (" + view.stopping + "); still there: " + joined(left);
  }
  for (const char* role : {"learner", "parameter_server", "shard"})
    if (const auto missing = absent(view, role); !missing.empty()) return joined(missing);
  std::vector<std::string> actors;
  for (const char* role : {"environment", "data"}) {
    const auto missing = absent(view, role);
    const auto count = std::count_if(view.nodes.begin(), view.nodes.end(),
                                     [&](const Node& node) { return node.role == role; });
    if (count > 0 && static_cast<std::size_t>(count) == missing.size())
      return "no " + std::string(role) + " actor serves: " + joined(missing);
    actors.insert(actors.end(), missing.begin(), missing.end());
  }
  for (const Node& node : view.nodes)
    if (node.role == "learner")
      return of_learner(node, view) + (actors.empty() ? "" : "; " + joined(actors));
  return "there is no learner";
}

}  // namespace

std::string explain_standstill(const StandstillView& view) {
  std::string text = cause(view);
  if (!view.disk_error.empty()) text += "; the last checkpoint was not written: " + view.disk_error;
  return text;
}

std::optional<std::string> StandstillWatch::look(const StandstillView& view, Time now) {
  const auto stood = std::chrono::duration_cast<std::chrono::milliseconds>(now - since_);
  // A learner that goes back to its checkpoint has made no update by that.
  const bool progress = view.version > version_;
  version_ = view.version;
  if (progress) {
    since_ = now;
    wait_ = after_;
    if (!std::exchange(said_, false)) return std::nullopt;
    return "updates go on after " + seconds(static_cast<std::uint64_t>(stood.count()));
  }
  if (stood < wait_) return std::nullopt;
  wait_ *= 2;
  said_ = true;
  return "no update for " + seconds(static_cast<std::uint64_t>(stood.count())) + " (version " +
         std::to_string(view.version) + ", " + std::to_string(view.actor_steps) +
         " actor steps): " + explain_standstill(view);
}

}  // namespace troupe::actors
