#include "actors/runtime/system.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <caf/error.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

#include "actors/runtime/log.hpp"
#include "actors/runtime/thread_settings.hpp"

namespace troupe::actors {
namespace {

using Milliseconds = std::chrono::milliseconds;

struct ProbeAnswer {
  bool answered = false;
  std::string text;  // numeric address, or the reason
};

// 0, or the errno of a connect that gets `limit_ms` to succeed.
int try_connect(const addrinfo& address, int limit_ms) {
  const int probe = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return errno;
  int error = ::connect(probe, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd item{probe, POLLOUT, 0};
    error = ETIMEDOUT;
    socklen_t size = sizeof error;
    if (::poll(&item, 1, limit_ms) == 1) ::getsockopt(probe, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  ::close(probe);
  return error;
}

std::string numeric(const addrinfo& address) {
  char host[NI_MAXHOST] = {};
  ::getnameinfo(address.ai_addr, address.ai_addrlen, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

// Each resolved address gets its share of the limit; the first that answers wins.
ProbeAnswer probe(const std::string& host, std::uint16_t port, Milliseconds limit) {
  const std::string where = host + ":" + std::to_string(port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) return {false, "cannot resolve " + where + ": " + gai_strerror(failed)};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  int addresses = 0;
  for (const addrinfo* next = found; next; next = next->ai_next) ++addresses;
  int error = ETIMEDOUT;
  for (const addrinfo* next = found; next; next = next->ai_next) {
    error = try_connect(*next, static_cast<int>(limit.count()) / addresses);
    if (error == 0) return {true, numeric(*next)};
  }
  return {false, "nothing answers at " + where + ": " + strerror(error)};
}

}  // namespace

std::string application_identifier(const std::string& run) {
  return "troupe/" + std::to_string(kProtocolVersion) + "/" + run;
}

void SystemConfig::apply(const SystemOptions& options) {
  // One queue for all workers answers local requests four times faster than stealing.
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", static_cast<std::size_t>(options.threads));
  set("scheduler.max-throughput", static_cast<std::size_t>(options.messages_at_once));
  set("middleman.heartbeat-interval", caf::timespan(options.heartbeat_interval));
  set("middleman.connection-timeout", caf::timespan(options.connection_timeout));
  set("middleman.workers", std::size_t{1});
  set("middleman.app-identifiers", std::vector<std::string>{application_identifier(options.run)});
  load<caf::io::middleman>();
}

void catch_exceptions(caf::scheduled_actor* self, std::string name) {
  self->set_exception_handler([name = std::move(name)](std::exception_ptr& escaped) -> caf::error {
    std::string what = "an exception of unknown type";
    try {
      std::rethrow_exception(escaped);
    } catch (const std::exception& exception) {
      what = exception.what();
    } catch (...) {
    }
    log_error(name, "stopped by " + what);
    return caf::make_error(caf::sec::runtime_error, what);
  });
}

Result<std::uint16_t> publish_on_loopback(caf::actor_system& system, const caf::actor& actor,
                                          std::uint16_t port) {
  const auto published = system.middleman().publish(actor, port, "127.0.0.1", true);
  if (published) return *published;
  const std::string where = "127.0.0.1:" + std::to_string(port);
  if (published.error() == caf::sec::cannot_open_port)
    return fail(ErrorCode::kUnavailable,
                "address in use: " + where + "; choose another port, or 0 for any free one");
  return fail(ErrorCode::kIo,
              "cannot listen on " + where + ": " + system.render(published.error()));
}

Error connect_error(const std::string& host, std::uint16_t port, const caf::error& reason) {
  const std::string where = host + ":" + std::to_string(port);
  if (reason == caf::sec::incompatible_application_ids)
    return {ErrorCode::kInvalidArgument,
            where + " belongs to another run or to another version of Troupe"};
  if (reason == caf::sec::no_actor_published_at_port)
    return {ErrorCode::kUnavailable, "the process at " + where + " offers nothing to connect to"};
  if (reason == caf::sec::request_timeout)
    return {ErrorCode::kTimeout, where + " accepts connections but did not answer in time"};
  return {ErrorCode::kUnavailable, "cannot connect to " + where + ": " + to_string(reason)};
}

caf::actor spawn_probe(caf::actor_system& system, Milliseconds limit) {
  return system.spawn<caf::detached>([limit](caf::event_based_actor* self) -> caf::behavior {
    name_thread("probe");
    return {[self, limit](const std::string& host, std::uint16_t port) {
      ProbeAnswer answer = probe(host, port, limit);
      self->quit();
      return caf::make_message(answer.answered, std::move(answer.text));
    }};
  });
}

}  // namespace troupe::actors
