// The progress line on a terminal and elsewhere.
#include "actors/telemetry/console.hpp"

#include <gmock/gmock.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>

namespace troupe::actors::telemetry {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A stream that ends up in a string.
class Captured {
 public:
  Captured() : stream_(open_memstream(&text_, &size_)) {}
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() {
    std::fclose(stream_);
    std::free(text_);
  }
  std::FILE* stream() { return stream_; }
  std::string text() {
    std::fflush(stream_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

RunStatus running() { return {.state = "running"}; }

TEST(ProgressConsole, PlainLinesComeNowAndThen) {
  Captured captured;
  ProgressConsole console(captured.stream(), {.is_terminal = false, .plain_every = 10});
  for (int now = 100; now <= 120; ++now) console.update(running(), now, 0, now);
  EXPECT_EQ(captured.text(), "0:00  steps 100\n0:00  steps 110\n0:00  steps 120\n");
}

TEST(ProgressConsole, OnATerminalOneLineIsUpdatedInPlace) {
  Captured captured;
  ProgressConsole console(captured.stream(), {.is_terminal = true, .colour = false});
  console.update(running(), 1, 0, 0);
  console.update(running(), 2, 0, 0.5);
  console.print("a warning");
  console.finish({.state = "finished", .reason = "done"}, 3, 0);
  console.finish({.state = "finished"}, 3, 0);
  console.update(running(), 4, 0, 9);
  EXPECT_EQ(captured.text(),
            "\r\033[K0:00  steps 1"
            "\r\033[K0:00  steps 2"
            "\r\033[Ka warning\n"
            "\r\033[K0:00  steps 2"
            "\r\033[Kfinished 0:00  steps 3  done\n");
}

TEST(ProgressConsole, ColourOnlyWhenAsked) {
  Captured captured;
  ProgressConsole console(captured.stream(), {.is_terminal = true, .colour = true});
  console.update(running(), 1, 0, 0);
  EXPECT_THAT(captured.text(), HasSubstr("\033[1m0:00"));
}

TEST(ConsoleOptions, FollowTheTerminalAndNoColor) {
  Captured captured;
  std::FILE* file = std::tmpfile();
  EXPECT_FALSE(console_options(file).is_terminal);
  EXPECT_EQ(terminal_columns(file), 80u);
  std::fclose(file);

  int master = 0, slave = 0;
  winsize size{};
  size.ws_col = 50;
  size.ws_row = 15;
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, &size), 0);
  std::FILE* terminal = fdopen(slave, "w");
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(console_options(terminal).is_terminal);
  EXPECT_TRUE(console_options(terminal).colour);
  EXPECT_EQ(terminal_columns(terminal), 50u);
  setenv("NO_COLOR", "1", 1);
  EXPECT_TRUE(console_options(terminal).is_terminal);
  EXPECT_FALSE(console_options(terminal).colour);
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(console_options(terminal).is_terminal);
  unsetenv("NO_COLOR");
  std::fclose(terminal);
  close(master);
}

}  // namespace
}  // namespace troupe::actors::telemetry
