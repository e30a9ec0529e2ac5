// Implements the encodings. A request is verb and arguments; an answer is 0 and the result, or 1,
// an error code and a sentence.
#include "learners/parameter_servers/wire.hpp"

#include <limits>
#include <mutex>

#include "learners/collectives/call.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

using Bytes = std::vector<std::uint8_t>;
using models::ByteReader;
using models::ByteWriter;

enum Verb : std::uint8_t { kState, kInitialise, kValues, kPush, kKeep, kKept };

constexpr std::uint32_t kMostTensors = 1 << 20;
constexpr std::uint8_t kMostDimensions = 16;

void put_error(ByteWriter& writer, const Error& error) {
  writer.put(std::uint8_t{1});
  writer.put(static_cast<std::uint8_t>(error.code));
  writer.put(std::string_view(error.message));
}

tl::unexpected<Error> unreadable(const char* what) {
  return fail(ErrorCode::kCorrupt, std::string(what) + " of a parameter server cannot be read.");
}

bool take_worker(ByteReader& reader, WorkerId& id) {
  std::int32_t worker = 0;
  const bool good = reader.take(worker) && reader.take(id.incarnation);
  id.worker = worker;
  return good;
}

void put_worker(ByteWriter& writer, const WorkerId& id) {
  writer.put(static_cast<std::int32_t>(id.worker));
  writer.put(id.incarnation);
}

std::optional<at::Tensor> take_tensor(ByteReader& reader) {
  std::uint8_t type = 0, dimensions = 0;
  std::vector<std::int64_t> shape;
  if (!reader.take(type) || type > static_cast<std::uint8_t>(ElementType::kBf16) ||
      !reader.take(dimensions) || dimensions > kMostDimensions ||
      !reader.take_values(dimensions, shape))
    return std::nullopt;
  constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kInt,
                                       at::kLong,  at::kHalf,   at::kBFloat16};
  std::uint64_t bytes = size_of(static_cast<ElementType>(type));
  for (const std::int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && bytes > std::numeric_limits<std::uint64_t>::max() /
                                                 static_cast<std::uint64_t>(extent)))
      return std::nullopt;
    bytes *= static_cast<std::uint64_t>(extent);
  }
  if (bytes > reader.remaining()) return std::nullopt;
  const at::Tensor tensor = at::empty(shape, kTypes[type]);
  Bytes data;
  if (!reader.take_values(bytes, data)) return std::nullopt;
  if (!data.empty()) std::memcpy(tensor.mutable_data_ptr(), data.data(), data.size());
  return tensor;
}

class RemoteService final : public ParameterService {
 public:
  RemoteService(std::shared_ptr<RequestLink> link, std::chrono::milliseconds timeout)
      : link_(std::move(link)), timeout_(timeout) {}

  Result<ServerState> state(WorkerId worker) override {
    ByteWriter request;
    request.put(std::uint8_t{kState});
    put_worker(request, worker);
    return ask(request).and_then([](const Bytes& answer) -> Result<ServerState> {
      ByteReader reader(answer);
      ServerState state;
      std::uint8_t ready = 0;
      if (!reader.take(ready) || !reader.take(state.incarnation) || !reader.take(state.version) ||
          !reader.take(state.applied) || !reader.take(state.last_sequence) || !reader.complete())
        return unreadable("The state");
      state.ready = ready != 0;
      return state;
    });
  }
  Result<void> initialise(const std::vector<at::Tensor>& values) override {
    ByteWriter request;
    request.put(std::uint8_t{kInitialise});
    put_tensors(request, values);
    return ask(request).map([](const Bytes&) {});
  }
  Result<std::vector<at::Tensor>> values() override {
    ByteWriter request;
    request.put(std::uint8_t{kValues});
    return ask(request).and_then([](const Bytes& answer) -> Result<std::vector<at::Tensor>> {
      ByteReader reader(answer);
      auto values = take_tensors(reader);
      if (!values || !reader.complete()) return unreadable("The values");
      return *std::move(values);
    });
  }
  Result<PushReply> push(const Push& push) override {
    ByteWriter request;
    request.put(std::uint8_t{kPush});
    put_worker(request, push.worker);
    request.put(push.sequence);
    request.put(push.server_incarnation);
    request.put(push.version);
    put_tensors(request, push.gradients);
    return ask(request).and_then([](const Bytes& answer) -> Result<PushReply> {
      ByteReader reader(answer);
      PushReply reply;
      std::uint8_t outcome = 0;
      if (!reader.take(outcome) || outcome > 2 || !reader.take(reply.version))
        return unreadable("The answer");
      reply.outcome = static_cast<PushOutcome>(outcome);
      auto values = take_tensors(reader);
      if (!values || !reader.complete()) return unreadable("The answer");
      reply.values = *std::move(values);
      return reply;
    });
  }
  Result<void> keep(std::span<const std::uint8_t> bytes) override {
    ByteWriter request;
    request.put(std::uint8_t{kKeep});
    request.put_values(bytes);
    return ask(request).map([](const Bytes&) {});
  }
  Result<Bytes> kept() override {
    ByteWriter request;
    request.put(std::uint8_t{kKept});
    return ask(request);
  }

 private:
  Result<Bytes> ask(ByteWriter& request) {
    const std::lock_guard lock(mutex_);
    Result<Bytes> answer = link_->ask(request.bytes(), timeout_);
    if (!answer) return answer;
    ByteReader reader(*answer);
    std::uint8_t failed = 0, code = 0;
    std::string message;
    if (!reader.take(failed)) return unreadable("An answer");
    if (failed == 0) return Bytes(answer->begin() + 1, answer->end());
    if (!reader.take(code) || code > static_cast<std::uint8_t>(ErrorCode::kInternal) ||
        !reader.take(message))
      return unreadable("An error");
    return fail(static_cast<ErrorCode>(code), message);
  }

  std::mutex mutex_;
  std::shared_ptr<RequestLink> link_;
  std::chrono::milliseconds timeout_;
};

// The result's bytes after the 0, or the error's after the 1.
template <class T, class Write>
void put_result(ByteWriter& writer, const Result<T>& result, Write write) {
  if (!result) return put_error(writer, result.error());
  writer.put(std::uint8_t{0});
  write();
}

}  // namespace

void put_tensors(ByteWriter& writer, const std::vector<at::Tensor>& tensors) {
  writer.put(static_cast<std::uint32_t>(tensors.size()));
  for (const at::Tensor& each : tensors) {
    const at::Tensor tensor = each.detach().contiguous();
    writer.put(static_cast<std::uint8_t>(*element_type(tensor.scalar_type())));
    writer.put(static_cast<std::uint8_t>(tensor.dim()));
    writer.put_values(std::span(tensor.sizes().data(), tensor.sizes().size()));
    writer.put_values(std::span<const std::uint8_t>(bytes_of(tensor)));
  }
}

std::optional<std::vector<at::Tensor>> take_tensors(ByteReader& reader) {
  std::uint32_t count = 0;
  if (!reader.take(count) || count > kMostTensors) return std::nullopt;
  std::vector<at::Tensor> tensors;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::optional<at::Tensor> tensor = take_tensor(reader);
    if (!tensor) return std::nullopt;
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

Bytes answer(ParameterService& service, std::span<const std::uint8_t> request) {
  ByteReader reader(request);
  ByteWriter writer;
  const auto bad = [&] {
    put_error(writer,
              Error{ErrorCode::kCorrupt, "A request to a parameter server cannot be read."});
    return writer.bytes();
  };
  std::uint8_t verb = 0;
  if (!reader.take(verb)) return bad();
  if (verb == kState) {
    WorkerId worker;
    if (!take_worker(reader, worker) || !reader.complete()) return bad();
    const Result<ServerState> state = service.state(worker);
    put_result(writer, state, [&] {
      writer.put(static_cast<std::uint8_t>(state->ready));
      writer.put(state->incarnation);
      for (const std::uint64_t count : {state->version, state->applied, state->last_sequence})
        writer.put(count);
    });
  } else if (verb == kInitialise) {
    const auto values = take_tensors(reader);
    if (!values || !reader.complete()) return bad();
    put_result(writer, service.initialise(*values), [] {});
  } else if (verb == kValues && reader.complete()) {
    const auto values = service.values();
    put_result(writer, values, [&] { put_tensors(writer, *values); });
  } else if (verb == kPush) {
    Push push;
    if (!take_worker(reader, push.worker) || !reader.take(push.sequence) ||
        !reader.take(push.server_incarnation) || !reader.take(push.version))
      return bad();
    auto gradients = take_tensors(reader);
    if (!gradients || !reader.complete()) return bad();
    push.gradients = *std::move(gradients);
    const Result<PushReply> reply = service.push(push);
    put_result(writer, reply, [&] {
      writer.put(static_cast<std::uint8_t>(reply->outcome));
      writer.put(reply->version);
      put_tensors(writer, reply->values);
    });
  } else if (verb == kKeep) {
    put_result(writer, service.keep(request.subspan(1)), [] {});
  } else if (verb == kKept && reader.complete()) {
    const Result<Bytes> kept = service.kept();
    put_result(writer, kept, [&] { writer.put_values(std::span<const std::uint8_t>(*kept)); });
  } else {
    return bad();
  }
  return writer.bytes();
}

std::unique_ptr<ParameterService> make_remote_service(std::shared_ptr<RequestLink> link,
                                                      std::chrono::milliseconds timeout) {
  return std::make_unique<RemoteService>(std::move(link), timeout);
}

}  // namespace troupe::learners
