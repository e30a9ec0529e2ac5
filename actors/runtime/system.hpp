// The actor system with the settings Troupe runs on, and the few calls of the middleman that are
// safe to use: publishing on loopback, and connecting without ever blocking another connection.
// CAF-specific spelling (0.17) stays in this file and in actors/messages.
#pragma once

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/sec.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <set>
#include <string>
#include <utility>

#include "envs/spec/result.hpp"

namespace troupe::actors {

inline constexpr int kProtocolVersion = 1;

struct SystemOptions {
  std::string run = "default";  // nodes of different runs refuse each other
  int threads = 2;              // workers shared by all actors that have no thread of their own
  int messages_at_once = 16;    // an actor yields its worker after so many
  std::chrono::milliseconds heartbeat_interval{5000};
  // A peer that is silent for so long is gone; longer than any one message takes to be sent.
  std::chrono::milliseconds connection_timeout{15000};
};

// The application identifier of a run: "troupe/<protocol>/<run>".
std::string application_identifier(const std::string& run);

class SystemConfig : public caf::actor_system_config {
 public:
  // `register_types(caf::actor_system_config&)` adds the message types; nothing is read from files
  // or from the command line.
  template <class RegisterTypes>
  SystemConfig(const SystemOptions& options, RegisterTypes&& register_types) {
    apply(options);
    register_types(static_cast<caf::actor_system_config&>(*this));
  }

 private:
  void apply(const SystemOptions& options);
};

// An actor system and its configuration. The destructor waits for every actor: arm exit_after()
// before.
class System {
 public:
  template <class RegisterTypes>
  System(const SystemOptions& options, RegisterTypes&& register_types)
      : config_(options, std::forward<RegisterTypes>(register_types)), system_(config_) {}

  caf::actor_system& get() { return system_; }

 private:
  SystemConfig config_;
  caf::actor_system system_;
};

// An exception that escapes a handler ends that actor with sec::runtime_error, logged under `name`;
// nothing else of the process is touched. Call it in every actor's constructor.
void catch_exceptions(caf::scheduled_actor* self, std::string name);

// Makes the actor reachable at 127.0.0.1. Port 0 takes any free one. Returns the port; kUnavailable
// when it is in use.
Result<std::uint16_t> publish_on_loopback(caf::actor_system& system, const caf::actor& actor,
                                          std::uint16_t port = 0);

// kUnavailable with a sentence that names the address and what to look at.
Error connect_error(const std::string& host, std::uint16_t port, const caf::error& reason);

// A one-shot actor with a thread of its own, which answers (std::string host, std::uint16_t port)
// with (bool answered, std::string numeric address or reason) within `limit` plus name resolution.
caf::actor spawn_probe(caf::actor_system& system, std::chrono::milliseconds limit);

inline constexpr std::chrono::milliseconds kProbeLimit{1000};

// Asks whether anything accepts connections at host:port, without blocking: `ok(std::string numeric
// address)` or `err(Error)` runs in `self`, once.
template <class Self, class Ok, class Err>
void probe_address(Self* self, std::string host, std::uint16_t port, Ok ok, Err err) {
  const caf::actor probe = spawn_probe(self->system(), kProbeLimit);
  const std::string address = host + ":" + std::to_string(port);
  self->request(probe, kProbeLimit + std::chrono::seconds(5), std::move(host), port)
      .then(
          [ok, err](bool answered, const std::string& text) mutable {
            if (answered)
              ok(text);
            else
              err(Error{ErrorCode::kUnavailable, text});
          },
          [err, address](const caf::error&) mutable {
            err(Error{ErrorCode::kTimeout,
                      "the name of " + address + " could not be resolved in time"});
          });
}

// Connects to the actor published at a numeric address that has just answered a probe. The
// middleman connects one address after the other, so an address that swallows packets would hold up
// all others.
template <class Self, class Ok, class Err>
void connect_to_answering(Self* self, const std::string& address, std::uint16_t port,
                          std::chrono::milliseconds timeout, Ok ok, Err err) {
  self->request(self->system().middleman().actor_handle(), timeout, caf::connect_atom_v, address,
                port)
      .then(
          [ok, err, address, port](const caf::node_id&, const caf::strong_actor_ptr& peer,
                                   const std::set<std::string>&) mutable {
            if (peer)
              ok(caf::actor_cast<caf::actor>(peer));
            else
              err(connect_error(address, port, caf::sec::no_actor_published_at_port));
          },
          [err, address, port](const caf::error& reason) mutable {
            err(connect_error(address, port, reason));
          });
}

// Both steps: `ok(caf::actor)` or `err(Error)` runs in `self`, once, at most about 6 s + `timeout`
// later. A first connect may fail by chance (a heartbeat tick during CAF's handshake): try again
// with a Link.
template <class Self, class Ok, class Err>
void connect_to_node(Self* self, std::string host, std::uint16_t port,
                     std::chrono::milliseconds timeout, Ok ok, Err err) {
  probe_address(
      self, std::move(host), port,
      [self, port, timeout, ok, err](const std::string& address) {
        connect_to_answering(self, address, port, timeout, ok, err);
      },
      err);
}

}  // namespace troupe::actors
