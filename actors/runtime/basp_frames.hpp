// Follows the stream of CAF's wire protocol (BASP, CAF 0.17) without CAF: every frame has a header
// of 32 bytes with the length of what follows, which CAF trusts up to 4 GiB. Pure; one object per
// connection and direction.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>

#include "envs/spec/result.hpp"

namespace troupe::actors {

using MessageTypes = std::set<std::string, std::less<>>;

struct FrameRules {
  bool to_server = true;                                 // who speaks: the side that connected
  std::uint32_t most_payload = std::uint32_t{16} << 20;  // bytes of one message
  // Names of the types that messages may consist of; null: any. See message_permissions.hpp.
  const MessageTypes* types = nullptr;
};

class BaspFrames {
 public:
  explicit BaspFrames(FrameRules rules) : rules_(rules) {}

  // The next bytes of the stream. An error names what no peer of ours sends; these bytes must then
  // not be passed on, and nothing of the frame has had an effect, because CAF acts on whole frames.
  Result<void> follow(std::span<const std::uint8_t> bytes);

 private:
  enum class Part { kHeader, kPrefix, kRest };
  Result<void> check_header();
  // How many bytes of the payload must be seen; 0: enough are here. Or what is wrong with them.
  Result<std::size_t> check_prefix();
  Result<void> check_types(std::string_view types) const;
  Result<std::size_t> check_source();

  FrameRules rules_;
  Part part_ = Part::kHeader;
  std::string seen_;         // of the header, then of the payload
  std::size_t wanted_ = 32;  // bytes of seen_ before the next check
  std::uint8_t operation_ = 0;
  bool named_receiver_ = false;
  std::uint64_t left_ = 0;  // bytes of the payload that seen_ does not hold
  std::string node_;        // the peer's id, of its handshake
};

}  // namespace troupe::actors
