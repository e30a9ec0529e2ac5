// `troupe watch` against a live publisher: plain lines, JSON, a real terminal, and runs that are
// not there.
#include "actors/telemetry/watch.hpp"

#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <future>
#include <sstream>
#include <thread>

#include "actors/telemetry/publisher.hpp"
#include "actors/telemetry/run_files.hpp"
#include "tests/actors/runtime/certificate_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::actors::telemetry {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

Message message(decltype(Message::payload) payload) {
  Message message;
  message.node = "node-x";
  message.actor_steps = 1500;
  message.learner_updates = 70;
  message.payload = std::move(payload);
  return message;
}

RunStatus status(const std::string& state, const std::string& reason = "") {
  return {.state = state, .reason = reason, .task = "dmc/cartpole_swingup"};
}

// A run in a thread: says `state` and one event again and again, and answers snapshot requests.
// With `states` it moves on to the next once somebody has joined.
class FakeRun {
 public:
  explicit FakeRun(std::vector<RunStatus> states, const std::string& endpoint = "tcp://127.0.0.1:*",
                   std::shared_ptr<const CurveKeys> curve = nullptr)
      : publisher_(open(endpoint, std::move(curve))), states_(std::move(states)) {
    publisher_.publish(message(status("starting")));
    publisher_.publish(message(Evaluation{.returns = {5, 7}, .lengths = {10, 10}}));
    publisher_.publish(message(Metrics{{"loss", 0.5}}));
    endpoint_ = publisher_.endpoint();
    snapshot_endpoint_ = publisher_.snapshot_endpoint();
    thread_ = std::thread([this] { work(); });
  }
  ~FakeRun() {
    stop_.set_value();
    thread_.join();
  }
  const std::string& endpoint() const { return endpoint_; }
  Announcement announcement() const {
    return announcement_of_this_process("fake", endpoint_, snapshot_endpoint_);
  }

 private:
  static Publisher open(const std::string& endpoint, std::shared_ptr<const CurveKeys> curve) {
    auto publisher = Publisher::open({.run = "fake",
                                      .endpoint = endpoint,
                                      .curve = std::move(curve),
                                      .linger = milliseconds(0)});
    if (!publisher) throw std::runtime_error(publisher.error().message);
    return std::move(*publisher);
  }
  void work() {
    const auto stopped = stop_.get_future();
    for (int round = 0; stopped.wait_for(milliseconds(1)) != std::future_status::ready;) {
      publisher_.serve_snapshots();
      if (states_.empty()) continue;
      const bool is_joined = publisher_.counts().snapshots > 0;
      const std::size_t at = is_joined ? static_cast<std::size_t>(round++) / 50 : 0;
      publisher_.publish(message(Event{.severity = "warning", .text = "actor-1 was replaced"}));
      publisher_.publish(message(states_[std::min(at, states_.size() - 1)]));
    }
  }
  Publisher publisher_;
  std::vector<RunStatus> states_;
  std::string endpoint_, snapshot_endpoint_;
  std::promise<void> stop_;
  std::thread thread_;
};

struct Outcome {
  int code;
  std::string output, errors;
};

std::string taken_from(std::FILE* file) {
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

Outcome watch(WatchCommand command) {
  command.output = std::tmpfile();
  command.errors = std::tmpfile();
  command.timeout = std::min(command.timeout, 20.0);
  const int code = watch_main(command);
  return {code, taken_from(command.output), taken_from(command.errors)};
}

TEST(Watch, ShowsPlainLinesUntilTheRunIsFinished) {
  const FakeRun run({status("running"), status("finished", "all steps were made")});
  const Outcome outcome = watch({.endpoint = run.endpoint(), .timeout = 20});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("steps 1.50k"));
  EXPECT_THAT(outcome.output, HasSubstr("warning: node-x: actor-1 was replaced\n"));
  EXPECT_THAT(outcome.output, HasSubstr("finished"));
  EXPECT_THAT(outcome.output, ::testing::EndsWith("all steps were made\n"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("\033")));
  EXPECT_EQ(outcome.errors, "");
}

TEST(Watch, AFailedRunIsAFailure) {
  const FakeRun run({status("running"), status("failed", "the learner died too often")});
  const Outcome outcome = watch({.endpoint = run.endpoint(), .timeout = 20});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("the learner died too often"));
}

TEST(Watch, JsonIsOneMessagePerLineTheSnapshotFirst) {
  const FakeRun run({status("running"), status("finished")});
  const Outcome outcome = watch({.endpoint = run.endpoint(), .json = true, .timeout = 20});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  std::array<int, kKinds> seen{};
  std::istringstream lines(outcome.output);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    const auto decoded = decode(line);
    ASSERT_TRUE(decoded) << decoded.error().message << "\n" << line;
    ++seen[decoded->payload.index()];
    last = line;
  }
  EXPECT_EQ(seen[static_cast<std::size_t>(Kind::kEvaluations)], 1);
  EXPECT_EQ(seen[static_cast<std::size_t>(Kind::kMetrics)], 1);
  EXPECT_GE(seen[static_cast<std::size_t>(Kind::kEvents)], 1);
  EXPECT_EQ(std::get<RunStatus>(decode(last)->payload).state, "finished");
}

TEST(Watch, OnceShowsThePresentAndReturns) {
  const FakeRun run({status("running")});
  const Outcome outcome = watch({.endpoint = run.endpoint(), .once = true, .timeout = 20});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("dmc/cartpole_swingup"));
  EXPECT_THAT(outcome.output, HasSubstr("running"));
}

TEST(Watch, FindsTheNewestLocalRun) {
  const TemporaryFolder runs;
  std::filesystem::create_directory(runs / "one");
  const FakeRun run({status("running")});
  ASSERT_TRUE(announce(runs / "one", run.announcement()));
  const Outcome outcome = watch({.runs_directory = runs.path(), .once = true, .timeout = 20});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("fake"));
}

TEST(Watch, WithoutAnyRunItSaysWhereItLooked) {
  const TemporaryFolder runs;
  const Outcome outcome = watch({.runs_directory = runs.path()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr(runs.path().string()));
}

TEST(Watch, AnEndpointThatDoesNotAnswerIsNamed) {
  const Outcome outcome = watch({.endpoint = "ipc:///tmp/telemetry-nobody-here", .timeout = 0.05});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("nothing answers at ipc:///tmp/telemetry-nobody-here"));
  EXPECT_EQ(watch({.endpoint = "nonsense"}).code, 1);
}

TEST(Watch, ARunThatFallsSilentIsGivenUp) {
  const TemporaryFolder runs;
  std::filesystem::create_directory(runs / "one");
  const FakeRun run({});  // answers the snapshot and says nothing more
  ASSERT_TRUE(announce(runs / "one", run.announcement()));
  const Outcome outcome =
      watch({.runs_directory = runs.path(), .timeout = 20, .give_up_after = 0.2});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("no message from " + run.endpoint()));
}

// Reads what the terminal got until it contains `text`; false when the other side has ended.
bool read_until(int terminal, std::string& seen, const std::string& text) {
  std::array<char, 4096> buffer;
  while (seen.find(text) == std::string::npos) {
    const ssize_t got = ::read(terminal, buffer.data(), buffer.size());
    if (got <= 0) return false;
    seen.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return true;
}

TEST(Watch, OnATerminalItDrawsAScreenFollowsItsSizeAndQuitsAtAKey) {
  const TemporaryFolder directory;
  const std::string endpoint = "ipc://" + (directory / "telemetry").string();
  winsize size{};
  size.ws_col = 100;
  size.ws_row = 40;
  int terminal = 0;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    _exit(watch_main({.endpoint = endpoint, .runs_directory = directory / "none", .timeout = 60}));
  }
  std::string seen;
  {
    const FakeRun run({status("running")}, endpoint);
    EXPECT_TRUE(read_until(terminal, seen, "dmc/cartpole_swingup")) << seen;
    EXPECT_TRUE(read_until(terminal, seen, "actor-1 was replaced")) << seen;
    EXPECT_THAT(seen, HasSubstr("\033[?1049h"));  // the alternate screen
    EXPECT_THAT(seen, HasSubstr("\033[33m"));     // a warning in yellow
    seen.clear();
    size.ws_col = 30;
    size.ws_row = 8;
    ASSERT_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
    EXPECT_TRUE(read_until(terminal, seen, ">")) << seen;  // lines are cut to the new width
    ASSERT_EQ(::write(terminal, "q", 1), 1);
    EXPECT_TRUE(read_until(terminal, seen, "\033[?1049l")) << seen;  // given back
    EXPECT_TRUE(read_until(terminal, seen, "steps 1.50k")) << seen;  // and the last state stays
  }
  int code = 0;
  ASSERT_EQ(waitpid(child, &code, 0), child);
  EXPECT_TRUE(WIFEXITED(code));
  EXPECT_EQ(WEXITSTATUS(code), 0);
  close(terminal);
}

// 0.0.0.0 stands for an address that other hosts can reach.
class SecuredWatchTest : public CertificateTest {
 protected:
  std::filesystem::path bundle_of(const std::string& role, const std::string& cluster = "cluster") {
    return bundle({.name = role, .addresses = {}, .roles = {role}}, cluster);
  }
  WatchCommand command(std::optional<std::filesystem::path> certificates) const {
    const std::string& bound = run_.endpoint();
    return {.endpoint = "tcp://127.0.0.1" + bound.substr(bound.rfind(':')),
            .certificates = std::move(certificates),
            .once = true};
  }
  const FakeRun run_{{status("running")},
                     "tcp://0.0.0.0:*",
                     std::make_shared<const CurveKeys>(*load_curve_keys(bundle_of("worker")))};
};

TEST_F(SecuredWatchTest, WatchersOfTheClusterSeeTheRun) {
  for (const char* role : {"watch", "control", "worker"}) {
    const Outcome outcome = watch(command(bundle_of(role)));
    EXPECT_EQ(outcome.code, 0) << role << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr("running"));
  }
}

TEST_F(SecuredWatchTest, OthersAreToldAtOnceWhyTheyDoNot) {
  const auto started = std::chrono::steady_clock::now();
  const Outcome plain = watch(command(std::nullopt));
  EXPECT_EQ(plain.code, 1);
  EXPECT_THAT(plain.errors, HasSubstr("give --certificates DIR"));
  must(init_authority(path("other"), "other", std::chrono::hours(1)));
  const Outcome foreign = watch(command(bundle_of("watch", "other")));
  EXPECT_EQ(foreign.code, 1);
  EXPECT_THAT(foreign.errors, HasSubstr("belongs to another cluster"));
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(10));
  const FakeRun open({status("running")});
  WatchCommand unencrypted = command(bundle_of("watch"));
  unencrypted.endpoint = open.endpoint();
  EXPECT_THAT(watch(unencrypted).errors, HasSubstr("watch it without --certificates"));
}

}  // namespace
}  // namespace troupe::actors::telemetry
