// Implements the fixed schedule.
#include "actors/jobs/deterministic.hpp"

#include <cstdlib>

#include "actors/config/checks.hpp"
#include "actors/roles/checkpoint_store.hpp"
#include "actors/roles/draw_shares.hpp"
#include "actors/roles/prefill.hpp"
#include "actors/roles/shard_host.hpp"
#include "actors/roles/table_setup.hpp"
#include "actors/roles/worker_file.hpp"
#include "envs/registry.hpp"
#include "learners/loader.hpp"
#include "replay/checkpoint.hpp"
#include "replay/gather.hpp"
#include "replay/joined_draw.hpp"

namespace troupe::actors {
namespace {

// Everything belongs to one incarnation for ever: a resumed run is the same run.
constexpr std::uint32_t kIncarnation = 1;
// Chunks close when full or at an episode's end, never by the clock.
constexpr auto kNow = SegmentBuilder::Time{};
constexpr std::chrono::milliseconds kNeverOld{1};

std::string node_name(std::size_t worker) { return "actor-" + std::to_string(worker); }
constexpr const char* kSchedule = "schedule.state";  // published parameters and the shares' stream
constexpr const char* kLimiter = "limiter.json";

}  // namespace

Result<std::unique_ptr<DeterministicRun>> DeterministicRun::make(
    const RunOptions& options, const std::filesystem::path& restore) {
  std::unique_ptr<DeterministicRun> run(new DeterministicRun(options));
  auto made = run->make_parts().and_then(
      [&] { return restore.empty() ? run->begin() : run->restore(restore); });
  if (!made) return tl::unexpected(made.error());
  return run;
}

Result<void> DeterministicRun::make_parts() {
  const auto seed = static_cast<std::uint64_t>(options_.seed);
  const auto& learning = options_.learners.learner;
  auto env =
      envs::make_env(options_.environment.name, {.time_limit = options_.environment.time_limit});
  if (!env) return tl::unexpected(env.error());
  const EnvSpec& spec = spec_ = (*env)->spec();
  for (std::uint32_t i = 0; i < options_.actors.count; ++i) {
    auto worker =
        EnvironmentWorker::make({.environment = options_.environment.name,
                                 .time_limit = options_.environment.time_limit,
                                 .environments = options_.actors.environments,
                                 .worker = i,
                                 .incarnation = kIncarnation,
                                 .seed = seed,
                                 .sigma = learning.d4pg.sigma,
                                 .flush_steps = limiter_figures(options_).flush_steps,
                                 .gather_statistics = learning.d4pg.normalise_observations});
    if (!worker) return tl::unexpected(worker.error());
    workers_.push_back(std::move(*worker));
  }
  const replay::Signature signature = replay::signature_of(spec);
  for (std::uint32_t i = 0; i < options_.replay.shards; ++i) {
    auto table = replay::Table::create(table_options(options_, i, kIncarnation), signature);
    if (!table) return tl::unexpected(table.error());
    tables_.push_back(std::move(*table));
    restored_.push_back(0);
  }
  // Before the library is loaded: MKL's results then do not depend on where memory happens to lie.
  ::setenv("MKL_CBWR", "COMPATIBLE", 0);
  const auto factory = learners::load_learning_library();
  if (!factory) return tl::unexpected(factory.error());
  auto learner = (*factory)(options_.job, learning,
                            {.spec = spec,
                             .seed = stream_seed(seed, "learner"),
                             .epoch = kIncarnation,
                             .deterministic = true,
                             .pictures = {}});
  if (!learner) return tl::unexpected(learner.error());
  learner_ = std::move(*learner);
  batch_ = replay::Batch(replay::batch_columns_of(signature), learner_->batch_size());
  shares_ = Random(stream_seed(seed, "shares"));
  return {};
}

Result<void> DeterministicRun::begin() {
  if (!options_.replay.prefill.empty())
    for (std::uint32_t i = 0; i < tables_.size(); ++i)
      if (auto filled = prefill_table(options_, spec_, i, *tables_[i]); !filled)
        return tl::unexpected(filled.error());
  return publish(learner_->parameters());
}

Result<void> DeterministicRun::publish(models::ParameterSetPtr set) {
  published_ = std::move(set);
  for (const auto& worker : workers_)
    if (auto taken = worker->set_parameters(published_); !taken) return taken;
  return {};
}

Result<void> DeterministicRun::round() {
  if (is_offline(options_)) return train_offline();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (auto stepped = workers_[i]->step(kNow); !stepped) return stepped;
    replay::Table& table = *tables_[i % tables_.size()];
    while (auto chunk = workers_[i]->take_chunk(kNow, kNeverOld))
      if (auto inserted = insert(table, std::move(*chunk)); !inserted) return inserted;
    if (const auto statistics = workers_[i]->take_statistics(); !statistics.empty())
      if (auto merged = learner_->merge_observations(statistics); !merged) return merged;
  }
  auto updated = update();
  if (!updated) return tl::unexpected(updated.error());
  return {};
}

// Without a ratio the tables give for ever: one update is one round.
Result<void> DeterministicRun::train_offline() {
  const auto counts = shares();
  if (!counts) return fail(ErrorCode::kInvalidArgument, "the tables give no batch to train from");
  return train(*counts);
}

Result<void> DeterministicRun::insert(replay::Table& table, replay::Chunk chunk) {
  const auto shared = std::make_shared<const replay::Chunk>(std::move(chunk));
  while (true) {
    // All that may be inserted now may come in here: nobody else inserts meanwhile.
    look();
    table.allow_inserts(table.statistics().inserted_items + limiter_.room());
    const replay::InsertOutcome outcome = table.try_insert(shared);
    switch (outcome.kind) {
      case replay::InsertOutcome::Kind::kAccepted:
      case replay::InsertOutcome::Kind::kDuplicate:
        return {};
      case replay::InsertOutcome::Kind::kRefused:
        return tl::unexpected(outcome.error);
      case replay::InsertOutcome::Kind::kWouldBlock:
        break;
    }
    auto updated = update();
    if (!updated) return tl::unexpected(updated.error());
    if (!*updated)
      return fail(ErrorCode::kInternal,
                  "neither an insert nor a sample is allowed: " + outcome.error.message);
  }
}

Result<bool> DeterministicRun::update() {
  bool any = false;
  while (const auto counts = shares()) {
    if (auto trained = train(*counts); !trained) return tl::unexpected(trained.error());
    any = true;
  }
  return any;
}

void DeterministicRun::look() {
  for (std::size_t i = 0; i < tables_.size(); ++i)
    limiter_.report(i, state_of(*tables_[i], restored_[i]));
}

// A refused draw uses no random number.
std::optional<DeterministicRun::Shares> DeterministicRun::shares() {
  look();
  const auto items = static_cast<std::size_t>(learner_->batch_size());
  if (!limiter_.can_sample(items)) return std::nullopt;
  Shares shares{draw_shares(limiter_.states()), {}};
  shares.counts = draw_counts(items, shares.probabilities, shares_);
  return shares;
}

Result<void> DeterministicRun::train(const Shares& shares) {
  replay::JoinedDraw drawn;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    if (shares.counts[i] == 0) {
      drawn.bound(tables_[i]->statistics().min_probability * shares.probabilities[i]);
      continue;
    }
    auto part = tables_[i]->try_sample(shares.counts[i]);
    if (!part) return tl::unexpected(part.error());
    drawn.add(std::move(*part), shares.probabilities[i]);
  }
  if (auto gathered = tables_.front()->gather(drawn.items(), batch_); !gathered) return gathered;
  drawn.name_keys(batch_.keys);
  limiter_.commit_sample(drawn.items().items.size());
  auto updated = learner_->update(batch_);
  if (!updated && updated.error().code != ErrorCode::kNotFinite)
    return tl::unexpected(updated.error());
  if (!updated) {
    ++not_finite_;
    return {};
  }
  const std::vector<Priorities> parts = by_shard(batch_.keys, updated->priorities, tables_.size());
  for (std::size_t i = 0; i < tables_.size(); ++i)
    (void)tables_[i]->update_priorities(parts[i].keys, parts[i].values);
  for (const auto& [name, value] : updated->metrics) metrics_[name] = value;
  if (updated->version % static_cast<std::uint64_t>(options_.learners.learner.publish_every) == 0)
    return publish(learner_->parameters());
  return {};
}

std::uint64_t DeterministicRun::actor_steps() const {
  if (is_offline(options_)) return version();
  std::uint64_t total = 0;
  for (const auto& worker : workers_) total += static_cast<std::uint64_t>(worker->counters().steps);
  return total;
}

Result<EvaluationResult> DeterministicRun::evaluate() const {
  return actors::evaluate({.environment = options_.environment.name,
                           .time_limit = options_.environment.time_limit,
                           .episodes = options_.evaluation.episodes,
                           .seed = static_cast<std::uint64_t>(options_.seed)},
                          *learner_->parameters(), [] { return true; });
}

Result<std::vector<FilePart>> DeterministicRun::save(const std::filesystem::path& directory) const {
  auto snapshot = learner_->snapshot();
  if (!snapshot) return tl::unexpected(snapshot.error());
  std::vector<FileContent> files = std::move(*snapshot);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const SendWindow nothing(1, std::chrono::milliseconds{1});
    files.push_back(worker_file(*workers_[i], nothing, ShardRouter(0), node_name(i)));
  }
  std::vector<std::uint8_t> schedule;
  replay::ByteWriter writer(schedule);
  for (const std::uint64_t word : shares_.state()) writer.put(word);
  writer.array(std::span<const std::uint8_t>(models::encode(*published_)));
  files.push_back({kSchedule, std::move(schedule)});
  const std::string limiter = limiter_.save(limiter_.samples());
  files.push_back({kLimiter, {limiter.begin(), limiter.end()}});
  std::vector<FilePart> parts;
  if (auto written = write_parts(files, directory, parts); !written)
    return tl::unexpected(written.error());
  std::vector<replay::TableSnapshot> cuts;
  for (const auto& table : tables_) cuts.push_back(table->snapshot());
  auto tables = ShardHost::write_cuts(cuts, directory);
  if (!tables) return tl::unexpected(tables.error());
  parts.insert(parts.end(), tables->begin(), tables->end());
  return parts;
}

Result<void> DeterministicRun::restore_limiter(const std::filesystem::path& directory) {
  const auto bytes = read_file(directory / kLimiter);
  if (!bytes) return tl::unexpected(bytes.error());
  return limiter_.load(std::string(bytes->begin(), bytes->end()));
}

Result<void> DeterministicRun::restore(const std::filesystem::path& directory) {
  if (auto loaded = learner_->load(directory); !loaded) return loaded;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    auto restored = replay::restore(
        *tables_[i], directory / ShardHost::file_name(static_cast<std::uint32_t>(i)));
    if (!restored) return tl::unexpected(restored.error());
    restored_[i] = tables_[i]->statistics().inserted_items;
  }
  if (auto loaded = restore_limiter(directory); !loaded) return loaded;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    SendWindow window(1, std::chrono::milliseconds{1});
    ShardRouter router(0);
    if (auto loaded = load_worker(*workers_[i], window, router, directory, node_name(i)); !loaded)
      return loaded;
    if (window.size() > 0)
      return fail(ErrorCode::kInvalidArgument,
                  (directory / worker_file_name(node_name(i))).string() +
                      " was written by a run that is not deterministic; start a new run directory");
  }
  const auto bytes = read_file(directory / kSchedule);
  if (!bytes) return tl::unexpected(bytes.error());
  replay::ByteReader reader(*bytes);
  Random::State state{};
  for (std::uint64_t& word : state) word = reader.take<std::uint64_t>();
  std::vector<std::uint8_t> encoded;
  reader.array(encoded);
  if (!reader.finished())
    return fail(ErrorCode::kCorrupt,
                (directory / kSchedule).string() + " is cut short or too long");
  auto set = models::decode_parameter_set(encoded);
  if (!set) return tl::unexpected(set.error());
  shares_.set_state(state);
  return publish(std::make_shared<const models::ParameterSet>(std::move(*set)));
}

}  // namespace troupe::actors
