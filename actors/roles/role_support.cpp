// Implements the driving of roles.
#include "actors/roles/role_support.hpp"

#include <bit>

#include "actors/roles/checkpoint_store.hpp"
#include "actors/runtime/thread_settings.hpp"

namespace troupe::actors {

using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds kReportEvery{100};

// Of an error at the start: the same again, whenever it is tried.
bool is_permanent(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kNotFound ||
         code == ErrorCode::kCorrupt;
}

}  // namespace

RoleBase::RoleBase(RoleContext context) : context_(std::move(context)) {}

void RoleBase::ready(RoleReady ready) const {
  ready.node = context_.node;
  ready.incarnation = context_.assignment.incarnation;
  caf::anon_send(context_.parent, std::move(ready));
}

void RoleBase::parts_written(std::uint64_t checkpoint, Result<std::vector<FilePart>> parts,
                             const std::string& state_json) const {
  PartWritten written{.node = context_.node,
                      .incarnation = context_.assignment.incarnation,
                      .checkpoint = checkpoint,
                      .files = {},
                      .state_json = state_json,
                      .error = {}};
  if (parts)
    written.files = std::move(*parts);
  else
    written.error = parts.error().message;
  caf::anon_send(context_.parent, std::move(written));
}

void RoleBase::write_parts_later(const CheckpointRequest& request, std::vector<FileContent> files,
                                 const std::string& state_json, MoreParts more) {
  writer_ =
      std::jthread([this, request, files = std::move(files), state_json, more = std::move(more)] {
        name_thread("checkpoint");
        std::vector<FilePart> parts;
        auto written = write_parts(files, request.directory, parts);
        if (written && more) {
          auto others = more();
          if (others)
            parts.insert(parts.end(), others->begin(), others->end());
          else
            written = tl::unexpected(others.error());
        }
        auto all = written ? Result<std::vector<FilePart>>(std::move(parts))
                           : tl::unexpected(written.error());
        parts_written(request.checkpoint, std::move(all), state_json);
      });
}

void RoleBase::evaluated(EvaluationDone done) const {
  done.node = context_.node;
  caf::anon_send(context_.parent, std::move(done));
}

void RoleBase::episode(std::uint64_t environment, double episode_return, std::uint64_t length,
                       std::uint64_t version) {
  const auto now = Clock::now();
  if (now - episode_sent_ < std::chrono::milliseconds(50)) return;
  episode_sent_ = now;
  caf::anon_send(context_.parent,
                 EpisodeDone{context_.node, environment,
                             std::bit_cast<std::uint64_t>(episode_return), length, version});
}

void RoleBase::warn(const std::string& kind, const std::string& text) const {
  caf::anon_send(context_.parent, Event{context_.node, "warning", kind, text});
}

void RoleBase::send_statistics(std::vector<std::uint8_t> delta) const {
  caf::anon_send(context_.parent, NormaliserDelta{true, std::move(delta)});
}

bool RoleBase::report_due() {
  const auto now = Clock::now();
  if (now - reported_ < kReportEvery) return false;
  reported_ = now;
  return true;
}

RoleActor::behavior_type drive_role(RoleActor::stateful_pointer<RoleState> self,
                                    std::shared_ptr<std::unique_ptr<RoleBase>> role,
                                    NodeActor parent, std::string node, std::uint32_t incarnation) {
  self->state.role = std::move(*role);
  name_thread(node);
  const auto end = [=](const std::string& error, bool permanent) {
    if (self->state.role) self->state.role->stop();
    self->state.role.reset();
    self->send(parent, RoleEnded{node, incarnation, error, permanent});
    self->quit();
  };
  self->set_exception_handler([=](std::exception_ptr& pointer) -> caf::error {
    std::string text = "an exception of unknown type";
    try {
      std::rethrow_exception(pointer);
    } catch (const std::exception& exception) {
      text = exception.what();
    } catch (...) {  // keeps the default text: nothing more is known
    }
    self->send(parent, RoleEnded{node, incarnation, "unexpected: " + text, false});
    return caf::sec::runtime_error;
  });
  if (auto started = self->state.role->start(); !started) {
    end(started.error().message, is_permanent(started.error().code));
    return RoleActor::behavior_type::make_empty_behavior();
  }
  self->send(self, work_atom_v);
  return {
      [=](const Peers& peers) { self->state.role->peers(peers); },
      [=](const StepLimits& limits) { self->state.role->limit(limits); },
      [=](const CheckpointRequest& request) { self->state.role->checkpoint(request); },
      [=](const EvaluateRequest& request) { self->state.role->evaluate(request); },
      [=](const Pause& pause) { self->state.role->pause(pause.paused); },
      [=](const NormaliserDelta& delta) { self->state.role->statistics(delta); },
      [=](const GroupFormed& group) { self->state.role->group(group); },
      [=](const Drain&) {
        self->state.draining = true;
        self->state.role->drain();
      },
      [=](const Shutdown&) { end("", false); },
      [=](work_atom) {
        if (auto worked = self->state.role->work(); !worked)
          end(worked.error().message, self->state.role->is_final(worked.error()));
        else if (self->state.draining && self->state.role->drained())
          end("", false);
        else
          self->send(self, work_atom_v);
      },
  };
}

}  // namespace troupe::actors
