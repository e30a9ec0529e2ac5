// See watch.hpp. One thread: wait for a message, update the model, draw.
#include "actors/telemetry/watch.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>

#include "actors/telemetry/console.hpp"
#include "actors/telemetry/run_files.hpp"
#include "actors/telemetry/subscriber.hpp"
#include "actors/telemetry/watch_screen.hpp"

namespace troupe::actors::telemetry {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kTick{100};   // how soon a key or a new size is noticed
constexpr double kRefreshEvery = 1;  // s between snapshots that make good for lost messages
constexpr std::size_t kPlainColumns = 400;
constexpr std::size_t kOnceRows = 60;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

milliseconds to_milliseconds(double seconds) {
  return milliseconds(static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e6) * 1000));
}

// Where to watch: what the command says, completed by what the run directories know.
Result<Announcement> find_run(const WatchCommand& command) {
  if (!command.endpoint) return newest_live_run(command.runs_directory);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(command.runs_directory, ignored)) {
    const auto known = read_announcement(entry.path());
    if (known && known->endpoint == *command.endpoint && is_alive(*known)) return known;
  }
  return Announcement{.run = {},
                      .endpoint = *command.endpoint,
                      .snapshot_endpoint = {},
                      .pid = 0,
                      .process_start = 0};
}

// A run that listens at every address of its host says 0.0.0.0: the host is the one it was asked
// at.
std::string at_host_of(const std::string& snapshot, const std::string& endpoint) {
  constexpr std::string_view kScheme = "tcp://";
  for (const std::string_view everywhere : {"tcp://0.0.0.0:", "tcp://[::]:"})
    if (snapshot.starts_with(everywhere) && endpoint.starts_with(kScheme))
      return endpoint.substr(0, endpoint.rfind(':')) + snapshot.substr(snapshot.rfind(':'));
  return snapshot;
}

Result<Subscriber> open_subscriber(const WatchCommand& command, const std::string& endpoint) {
  if (!command.certificates) return Subscriber::open(endpoint);
  auto keys = load_curve_keys(*command.certificates);
  if (!keys) return tl::unexpected(keys.error());
  return Subscriber::open(endpoint, 1000, std::make_shared<const CurveKeys>(std::move(*keys)));
}

class Watch {
 public:
  Watch(const WatchCommand& command, Announcement run, Subscriber subscriber)
      : command_(command),
        run_(std::move(run)),
        subscriber_(std::move(subscriber)),
        started_(steady_seconds()),
        last_heard_(started_) {}

  int main() {
    if (auto joined = join(); !joined) return complain(joined.error().message);
    if (command_.once) return show_once();
    const ConsoleOptions console = console_options(command_.output);
    if (console.is_terminal && !command_.json) {
      screen_ = WatchScreen::open(command_.output, console.colour);
    }
    const int code = follow();
    screen_.reset();
    if (!command_.json) print_progress();
    if (!farewell_.empty()) return complain(farewell_);
    return code;
  }

 private:
  int complain(const std::string& reason) {
    std::fprintf(command_.errors, "troupe watch: %s\n", reason.c_str());
    return 1;
  }

  // The first status says where snapshots are, unless a run directory did.
  Result<void> join() {
    const double deadline = started_ + command_.timeout;
    const auto let_in = subscriber_.await_connection(to_milliseconds(command_.timeout));
    if (!let_in && let_in.error().code == ErrorCode::kTimeout) return nobody();
    if (!let_in) return let_in;
    while (run_.snapshot_endpoint.empty()) {
      const double left = deadline - steady_seconds();
      if (left <= 0) return nobody();
      const auto received = subscriber_.receive(std::min(kTick, to_milliseconds(left)));
      if (!received) continue;
      if (!received->message) return tl::unexpected(received->message.error());
      if (const auto* status = std::get_if<RunStatus>(&received->message->payload)) {
        run_.snapshot_endpoint = status->snapshot_endpoint;
      }
    }
    const double left = std::max(0.5, deadline - steady_seconds());
    const auto snapshot = subscriber_.snapshot(snapshot_endpoint(), to_milliseconds(left));
    if (!snapshot && snapshot.error().code == ErrorCode::kTimeout) return nobody();
    if (!snapshot) return tl::unexpected(snapshot.error());
    last_heard_ = steady_seconds();
    model_.apply(*snapshot);
    if (command_.json) print_snapshot(*snapshot);
    return {};
  }

  std::string snapshot_endpoint() const {
    return at_host_of(run_.snapshot_endpoint, run_.endpoint);
  }

  tl::unexpected<Error> nobody() const {
    return fail(ErrorCode::kTimeout, "nothing answers at " + run_.endpoint + " within " +
                                         format_number(command_.timeout) +
                                         " s: is the run alive, and is this the endpoint that it "
                                         "printed at its start?");
  }

  int show_once() {
    if (command_.json) return finish_output(0);
    for (const StyledLine& line : render(model_, kPlainColumns, kOnceRows, false)) {
      std::fprintf(command_.output, "%s\n", line.text.c_str());
    }
    return finish_output(0);
  }

  int finish_output(int code) {
    const bool written = std::fflush(command_.output) == 0 && std::ferror(command_.output) == 0;
    return written ? code : 1;
  }

  // Until the run ends, the user quits, or the run is given up (then farewell_ says why).
  int follow() {
    while (true) {
      if (is_final(model_.status)) return finish_output(model_.status.state == "failed" ? 1 : 0);
      take_messages();
      const double now = steady_seconds();
      model_.silent_for = now - last_heard_;
      make_good_for_losses(now);
      if (screen_ && screen_->wants_to_quit()) return 0;
      show(now);
      if (finish_output(0) != 0) return 1;
      if (!is_final(model_.status) && is_gone()) return 1;
    }
  }

  // Waits for one message, then takes what is there already.
  void take_messages() {
    milliseconds wait = kTick;
    for (int i = 0; i < 1000; ++i) {
      const auto received = subscriber_.receive(wait);
      if (!received) return;
      wait = milliseconds(0);
      last_heard_ = steady_seconds();
      if (command_.json) std::fprintf(command_.output, "%s\n", received->text.c_str());
      if (!received->message) continue;
      model_.apply(*received->message);
      if (!screen_ && !command_.json) print_news(*received->message);
      if (is_final(model_.status)) return;
    }
  }

  void make_good_for_losses(double now) {
    model_.malformed = subscriber_.malformed();
    if (subscriber_.lost() == model_.lost || now < next_refresh_) return;
    model_.lost = subscriber_.lost();
    next_refresh_ = now + kRefreshEvery;
    const auto snapshot = subscriber_.snapshot(snapshot_endpoint(), to_milliseconds(kRefreshEvery));
    if (snapshot) model_.apply(*snapshot);
  }

  void show(double now) {
    if (screen_) {
      screen_->draw(render(model_, screen_->columns(), screen_->rows(), screen_->unicode()));
    } else if (!command_.json && now >= next_plain_) {
      next_plain_ = now + command_.plain_every;
      print_progress();
    }
  }

  void print_progress() {
    std::string line =
        progress_line(model_.status, model_.actor_steps, model_.learner_updates, kPlainColumns);
    if (model_.lost > 0) line += "  missed here: " + std::to_string(model_.lost);
    if (!model_.status.reason.empty()) line += "  " + model_.status.reason;
    std::fprintf(command_.output, "%s\n", line.c_str());
    std::fflush(command_.output);
  }

  // Events and evaluations get a plain line of their own.
  void print_news(const Message& message) {
    if (const auto* event = std::get_if<Event>(&message.payload)) {
      std::fprintf(command_.output, "%s: %s: %s\n", event->severity.c_str(), message.node.c_str(),
                   event->text.c_str());
    } else if (const auto* evaluation = std::get_if<Evaluation>(&message.payload)) {
      std::fprintf(command_.output,
                   "evaluation at %lld actor steps: mean return %s of %zu episodes\n",
                   static_cast<long long>(message.actor_steps),
                   format_number(mean(evaluation->returns)).c_str(), evaluation->returns.size());
    }
  }

  void print_snapshot(const Snapshot& snapshot) {
    for (const auto* messages :
         {&snapshot.events, &snapshot.episodes, &snapshot.evaluations, &snapshot.metrics}) {
      for (const Message& message : *messages) {
        std::fprintf(command_.output, "%s\n", encode(message).c_str());
      }
    }
    if (snapshot.status) std::fprintf(command_.output, "%s\n", encode(*snapshot.status).c_str());
  }

  bool is_gone() {
    const bool process_ended = run_.pid > 0 && model_.silent_for > 1 && !is_alive(run_);
    if (process_ended) {
      farewell_ = "the run '" + run_.run + "' (process " + std::to_string(run_.pid) +
                  ") is gone without saying that it finished";
    } else if (!screen_ && model_.silent_for > command_.give_up_after) {
      farewell_ = "no message from " + run_.endpoint + " for " + format_duration(model_.silent_for);
    }
    return !farewell_.empty();
  }

  const WatchCommand& command_;
  Announcement run_;
  Subscriber subscriber_;
  WatchModel model_;
  std::unique_ptr<WatchScreen> screen_;
  double started_, last_heard_;
  double next_plain_ = 0, next_refresh_ = 0;
  std::string farewell_;
};

}  // namespace

int watch_main(const WatchCommand& command) {
  const auto run = find_run(command);
  auto subscriber = run ? open_subscriber(command, run->endpoint) : tl::unexpected(run.error());
  if (!subscriber) {
    std::fprintf(command.errors, "troupe watch: %s\n", subscriber.error().message.c_str());
    return 1;
  }
  return Watch(command, *run, std::move(*subscriber)).main();
}

}  // namespace troupe::actors::telemetry
