// The typed interface of every actor: this file alone says who may send what to whom.
//
// Loss rules. A step is acknowledged when it is in a live table; it survives the death of actors,
// links and learners, not that of its own shard since the shard's last checkpoint: inserted +
// prefilled = held + removed + lost_with_shard, exactly, however the shard died (a StepMark counts
// before the acknowledgement). A chunk that was taken in and not acknowledged before the death is
// sent again to the next life, and counts as inserted once in each. Segments are sent at least once
// in a resend window and de-duplicated by (worker, incarnation, sequence). Batches of uniform
// tables may die with a learner. Parameters: the newest (epoch, version) wins. Priorities, reports
// and events: best effort; lost priorities are counted. Control messages below are at most once per
// connection; everything that matters is asked for again by its sender's own clock.
#pragma once

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "actors/messages/messages.hpp"

namespace troupe::actors {

// Knows the topology; one per run, in the process of `troupe run`.
using CoordinatorActor = caf::typed_actor<
    // A node is there: answered with Assignment, or an error naming the mismatch.
    caf::replies_to<Hello, caf::strong_actor_ptr>::with<Assignment>,
    caf::reacts_to<RoleReady>,       // the role serves; its endpoints are handed on as Peers
    caf::reacts_to<Report>,          // metrics of a node
    caf::reacts_to<Pong>,            // the node lives
    caf::reacts_to<PartWritten>,     // a node's part of a checkpoint stands, or failed
    caf::reacts_to<EvaluationDone>,  // returns of an evaluation
    caf::reacts_to<EpisodeDone>,     // return of a training episode
    caf::reacts_to<Event>,           // for the log and the watchers
    caf::reacts_to<RoleEnded>,       // the role is over; the process follows
    caf::reacts_to<GroupWanted>,     // a learner wants to be in the next group
    caf::replies_to<RendezvousRequest>::with<RendezvousAnswer>,  // where members find each other
    caf::reacts_to<NormaliserDelta>,                             // passed on to the learner
    // Of whoever knows the run's secret: show, stop, scale, drain.
    caf::replies_to<ControlRequest>::with<ControlAnswer>,
    caf::reacts_to<beat_atom>>;  // local: the coordinator's own clock

// Merges what all report, publishes it and writes the run's files; in the coordinator's process.
// Detached: a slow disk holds up nobody.
using HubActor =
    caf::typed_actor<caf::reacts_to<Report>, caf::reacts_to<Event>, caf::reacts_to<EpisodeDone>,
                     caf::reacts_to<EvaluationDone>, caf::reacts_to<NodeState>,
                     caf::replies_to<RunPhase>::with<bool>,  // answered when the files and the last
                                                             // messages are out
                     caf::reacts_to<beat_atom>>;             // local: publishing clock

// One per node: the well-known actor that the coordinator monitors and talks to.
using NodeActor =
    caf::typed_actor<caf::reacts_to<Ping>,               // answered by Pong
                     caf::reacts_to<Peers>,              // passed to the role
                     caf::reacts_to<StepLimits>,         // passed to the role (shards only)
                     caf::reacts_to<CheckpointRequest>,  // passed to the role
                     caf::reacts_to<EvaluateRequest>,    // passed to the role (evaluator only)
                     caf::reacts_to<Pause>,              // passed to the role
                     caf::reacts_to<GroupFormed>,        // passed to the role (learner only)
                     caf::reacts_to<NormaliserDelta>,    // passed to the role (learner only)
                     caf::reacts_to<Drain>,     // the role finishes and ends, then the node
                     caf::reacts_to<Shutdown>,  // the role ends, then the node
                     // From the role, passed to the coordinator:
                     caf::reacts_to<RoleReady>, caf::reacts_to<PartWritten>,
                     caf::reacts_to<EvaluationDone>, caf::reacts_to<EpisodeDone>,
                     caf::reacts_to<Event>, caf::reacts_to<RoleEnded>, caf::reacts_to<GroupWanted>,
                     caf::replies_to<RendezvousRequest>::with<RendezvousAnswer>,
                     caf::reacts_to<beat_atom>>;  // local: link and report clock

// One per node: does the work. Detached, because it computes and waits.
using RoleActor =
    caf::typed_actor<caf::reacts_to<Peers>, caf::reacts_to<StepLimits>,
                     caf::reacts_to<CheckpointRequest>, caf::reacts_to<EvaluateRequest>,
                     caf::reacts_to<Pause>, caf::reacts_to<NormaliserDelta>,
                     caf::reacts_to<GroupFormed>, caf::reacts_to<Drain>, caf::reacts_to<Shutdown>,
                     caf::reacts_to<work_atom>>;  // local: one slice of work

}  // namespace troupe::actors
