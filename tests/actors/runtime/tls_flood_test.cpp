// Floods at the relay while two actor systems talk through it. TROUPE_FLOOD=10000 in the
// environment is the long way; what was measured is printed.
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/actors/runtime/tls_relay_fixture.hpp"

namespace troupe::actors {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

std::size_t resident_bytes() {
  std::ifstream stream("/proc/self/statm");
  std::size_t size = 0, resident = 0;
  stream >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

double until_closed(int raw) {
  const auto start = Clock::now();
  char bytes[4096];
  while (::recv(raw, bytes, sizeof bytes, 0) > 0) {
  }
  ::close(raw);
  return Milliseconds(Clock::now() - start).count();
}

class TlsFloodTest : public TlsRelayTest {
 protected:
  static int flood() {
    const char* wanted = std::getenv("TROUPE_FLOOD");
    return wanted != nullptr ? std::atoi(wanted) : 400;
  }
};

TEST_F(TlsFloodTest, JunkAndHalfOpenConnectionsAreClosedInTimeAndMembersGoOn) {
  Joined node(to_relay(credentials_of({kWorkerRole})));
  ASSERT_EQ(node.ask(std::string("a")), "a back");
  const auto worker = credentials_of({kWorkerRole});
  const std::size_t before = resident_bytes();
  std::vector<int> idle;
  for (int i = 0; i < 300; ++i)
    idle.push_back(stranger(i % 2 == 0 ? "" : std::string("\x16\x03\x01\x02\x00\x01", 6)));
  std::vector<double> closed, asked, let_in;
  const std::string kinds[] = {"GET / HTTP/1.1\r\n\r\n", std::string(60, '\xff'),
                               std::string("\1\0\0\0\xff\xff\xff\xff", 8),
                               std::string("\x16\x03\x01\xff\xff", 5) + std::string(3000, 'x')};
  for (int i = 0; i < flood(); ++i) {
    closed.push_back(until_closed(stranger(kinds[i % 4])));
    if (i % 20 != 0) continue;
    auto start = Clock::now();
    ASSERT_EQ(node.ask(std::string("b")), "b back");
    asked.push_back(Milliseconds(Clock::now() - start).count());
    start = Clock::now();
    ASSERT_EQ(refusal(worker), "nothing");
    let_in.push_back(Milliseconds(Clock::now() - start).count());
  }
  std::vector<double> silent;
  for (const int raw : idle) silent.push_back(until_closed(raw));
  const std::size_t after = resident_bytes();
  std::printf(
      "%d junk closed after %.2f ms (median), %.1f ms at most; a member's request %.2f ms, "
      "a newcomer %.2f ms (medians); memory %zu -> %zu KiB\n",
      flood(), median(closed), *std::max_element(closed.begin(), closed.end()), median(asked),
      median(let_in), before >> 10, after >> 10);
  EXPECT_LT(median(closed), 1000);
  EXPECT_LT(*std::max_element(silent.begin(), silent.end()), 10000);
  EXPECT_LT(after, before + (std::size_t{64} << 20));
  EXPECT_TRUE(eventually([&] { return relay_->counts().in_handshake == 0; }));
}

// A handshake that begins well and then drips.
TEST_F(TlsFloodTest, ASlowHandshakeEndsWhenItsTimeIsUp) {
  open_relay({.patience = 500ms});
  const int raw = stranger(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));
  const auto start = Clock::now();
  bool open = true;
  while (open && Clock::now() - start < kPatience) {
    std::this_thread::sleep_for(20ms);
    open = ::send(raw, "x", 1, MSG_NOSIGNAL) == 1;
  }
  EXPECT_FALSE(open);
  EXPECT_GE(Clock::now() - start, 450ms);
  ::close(raw);
}

// Behind the handshake: a member that announces four gibibytes.
TEST_F(TlsFloodTest, AMembersLengthOfFourGibibytesCostsItsConnectionAndNoMemory) {
  auto dialer = std::move(*TlsDialer::open(to_relay(credentials_of({kWorkerRole}))));
  const std::size_t before = resident_bytes();
  std::vector<double> took;
  for (int i = 0; i < 5; ++i) {
    const int raw = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(dialer->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(raw, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    std::string header(32, '\0');
    header[0] = 1;
    header.replace(4, 4, 4, '\xff');
    (void)!::send(raw, header.data(), header.size(), MSG_NOSIGNAL);
    took.push_back(until_closed(raw));
  }
  std::printf("4 GiB announced: closed after %.2f ms, connecting included (median of 5)\n",
              median(took));
  EXPECT_LT(median(took), 1000);
  EXPECT_LT(resident_bytes(), before + (std::size_t{64} << 20));
  EXPECT_THAT(lines(), testing::HasSubstr("announces 4294967295 bytes"));
}

}  // namespace
}  // namespace troupe::actors
