// The open phase of a relay's connection: copies bytes between a TLS session and a plain socket
// with one bounded buffer each way, so that whoever does not read slows whoever writes. Belongs to
// the relay's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/runtime/basp_frames.hpp"
#include "actors/runtime/relay_loop.hpp"
#include "actors/runtime/tls_session.hpp"

namespace troupe::actors {

class RelayPipe {
 public:
  explicit RelayPipe(FrameRules rules) : frames_(rules) {}

  // Moves what can be moved now, within a fair share. False: it is over; fault() may say why.
  bool move(TlsSession& session, const Socket& plain, bool broken);
  // What the TLS socket and the plain one are to be watched for.
  std::uint32_t session_events() const;
  std::uint32_t plain_events() const;

  // A clause about the far side: "a frame announces …"; empty: an ordinary end.
  const std::string& fault() const { return fault_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Buffer {
    std::vector<std::uint8_t> bytes;  // allocated while it holds something
    std::size_t begin = 0, end = 0;
    bool empty() const { return begin == end; }
    std::span<std::uint8_t> room();
    void drop_front(std::size_t count);
  };
  bool read_session(TlsSession& session);
  bool write_plain(const Socket& plain);
  bool read_plain(const Socket& plain);
  bool write_session(TlsSession& session);
  void end(std::string why = {});

  BaspFrames frames_;
  Buffer inwards_, outwards_;  // from the TLS session; to it
  bool session_ended_ = false, plain_ended_ = false, over_ = false;
  bool read_wants_write_ = false, write_wants_read_ = false;
  std::string fault_;
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe::actors
