// Frames of CAF's wire protocol, whole and in pieces, and those that no node of a run sends. The
// bytes are laid out by hand; tls_relay_test.cpp shows that CAF's own pass.
#include "actors/runtime/basp_frames.hpp"

#include <gmock/gmock.h>

#include <string>

namespace troupe::actors {
namespace {

using testing::HasSubstr;

std::string header(int operation, std::uint32_t length, int flags = 0) {
  std::string bytes(32, '\0');
  bytes[0] = static_cast<char>(operation);
  bytes[3] = static_cast<char>(flags);
  for (int i = 0; i < 4; ++i) bytes[7 - i] = static_cast<char>(length >> 8 * i);
  return bytes;
}

const std::string kNode(32, 'n'), kOther(32, 'o');

std::string frame(int operation, const std::string& payload, int flags = 0) {
  return header(operation, static_cast<std::uint32_t>(payload.size()), flags) + payload;
}

std::string message(const std::string& types, const std::string& content = "", int flags = 0) {
  std::string payload(3, '\0');
  std::size_t size = types.size();
  for (; size >= 128; size >>= 7) payload += static_cast<char>(size | 128);
  payload += static_cast<char>(size);
  return frame(2, payload + types + content, flags);
}

class BaspFramesTest : public testing::Test {
 protected:
  Result<void> follow(const std::string& bytes, std::size_t step = 1 << 20) {
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      const std::string part = bytes.substr(at, step);
      const auto* data = reinterpret_cast<const std::uint8_t*>(part.data());
      if (auto followed = frames_.follow({data, part.size()}); !followed) return followed;
    }
    return {};
  }
  std::string refusal(const std::string& bytes) {
    const auto followed = follow(bytes);
    return followed ? "nothing" : followed.error().message;
  }

  const MessageTypes types_{"@atom", "@str", "troupe::actors::Hello"};
  BaspFrames frames_{{.to_server = true, .most_payload = 1 << 20, .types = &types_}};
};

TEST_F(BaspFramesTest, ANodesConversationPassesInPiecesOfAnySize) {
  const std::string talk = frame(1, kNode) + message("@<>+@atom+@atom+@str", "x", 1) +
                           frame(4, kNode + kOther) + frame(6, "") +
                           message("@<>+troupe::actors::Hello", std::string(100000, 'h')) +
                           message("@<>") + frame(5, kNode + kOther + "why");
  for (const std::size_t step : {1, 2, 3, 31, 33, 1000, 1 << 20}) {
    frames_ = BaspFrames({.to_server = true, .most_payload = 1 << 20, .types = &types_});
    const auto followed = follow(talk + talk, step);
    EXPECT_TRUE(followed.has_value()) << step << ": " << followed.error().message;
  }
}

TEST_F(BaspFramesTest, ALengthOfFourGibibytesIsRefusedAtItsHeader) {
  EXPECT_EQ(refusal(header(1, 0xffffffff)),
            "a frame announces 4294967295 bytes; at most 8192 are allowed");
  frames_ = BaspFrames({.to_server = true, .most_payload = 1 << 20, .types = &types_});
  ASSERT_TRUE(follow(frame(1, kNode)).has_value());
  EXPECT_EQ(refusal(header(2, 0xffffffff)),
            "a frame announces 4294967295 bytes; at most 1048576 are allowed");
}

TEST_F(BaspFramesTest, TypesThatTheRolesDoNotAllowAreRefusedByName) {
  ASSERT_TRUE(follow(frame(1, kNode)).has_value());
  EXPECT_THAT(refusal(message("@<>+@str+troupe::actors::StopRequest")),
              HasSubstr("troupe::actors::StopRequest"));
}

TEST_F(BaspFramesTest, NobodyEndsAnActorByMessage) {
  frames_ = BaspFrames({.to_server = true, .most_payload = 1 << 20, .types = nullptr});
  ASSERT_TRUE(follow(frame(1, kNode) + message("@<>+anything")).has_value());
  EXPECT_THAT(refusal(message("@<>+@exit")), HasSubstr("end an actor"));
}

TEST_F(BaspFramesTest, FramesThatNoNodeSendsAreRefused) {
  EXPECT_THAT(refusal(message("@<>")), HasSubstr("handshake"));
  for (const std::string& bad :
       {frame(3, kNode + kOther),  // routed
        frame(0, kNode), frame(7, ""), frame(255, kNode), frame(5, kOther + kNode),
        frame(4, kOther + kNode), frame(1, kOther),  // another's name
        frame(2, std::string("\1\0\0\0", 4)),        // forwarded
        frame(2, std::string("\0\1\2\0", 4)),        // a type by number
        frame(2, std::string(3, '\0')), frame(2, ""), frame(2, std::string("\0\0\0\5abc", 7)),
        frame(2, std::string("\0\0\0\xff\xff\xff\xff\x7f", 8)), message("+@str"),
        message("@<>+@atom"), message("@<>+@str+"), message("@<>" + std::string(5000, 'a')),
        frame(1, std::string(31, 'n'))}) {
    frames_ = BaspFrames({.to_server = true, .most_payload = 1 << 20, .types = &types_});
    ASSERT_TRUE(follow(frame(1, kNode)).has_value());
    EXPECT_FALSE(follow(bad).has_value()) << testing::PrintToString(bad.substr(0, 60));
  }
}

}  // namespace
}  // namespace troupe::actors
