#include "learners/data/picture_feed.hpp"

#include <algorithm>
#include <cstring>

#include "envs/spec/fnv.hpp"

namespace troupe::learners::data {
namespace {

constexpr std::uint32_t kOwn = 0;  // the feed as a worker of the ledger
constexpr std::size_t kPicture = 0, kLabel = 1, kPosition = 2;  // columns of a chunk

std::string range(std::int64_t begin, std::int64_t end) {
  return std::to_string(begin) + "-" + std::to_string(end - 1);
}

std::span<const std::int64_t> integers(const std::vector<std::uint8_t>& bytes) {
  return {reinterpret_cast<const std::int64_t*>(bytes.data()), bytes.size() / sizeof(std::int64_t)};
}

}  // namespace

replay::Signature picture_signature(const FeedOptions& options) {
  replay::Signature signature;
  signature.step = picture_columns(options.side, options.channels);
  signature.step.push_back({"position", DType::kI64, {}});
  Fnv1a hash;
  hash.add(options.fingerprint);
  hash.add(static_cast<std::uint64_t>(options.side));
  hash.add(static_cast<std::uint64_t>(options.channels));
  signature.spec_hash = hash.value();
  return signature;
}

replay::Chunk picture_chunk(const Lease& lease, const Pictures& pictures, const DataActor& actor,
                            const FeedOptions& options) {
  const auto rows = static_cast<std::size_t>(lease.end - lease.begin);
  const replay::Signature signature = picture_signature(options);
  replay::Chunk chunk;
  chunk.header = {.worker = actor.index,
                  .incarnation = actor.incarnation,
                  .sequence = lease.id,
                  .environment = 0,
                  .episode = lease.epoch,
                  .first_step = static_cast<std::uint32_t>(lease.begin),
                  .steps = static_cast<std::uint32_t>(rows),
                  .end = replay::EpisodeEnd::kTruncated,
                  .parameter_version = 0,
                  .learner_epoch = options.learner_epoch,
                  .spec_hash = signature.spec_hash};
  for (const Column& column : signature.step) chunk.step.emplace_back(rows * column.bytes());
  chunk.reward.resize(rows);
  std::vector<std::int64_t> labels(rows, kCorruptLabel), positions(rows);
  for (std::size_t i = 0; i < rows; ++i) positions[i] = lease.begin + static_cast<std::int64_t>(i);
  const std::size_t bytes = signature.step[kPicture].bytes();
  for (std::size_t i = 0; i < pictures.positions.size(); ++i) {
    const auto row = static_cast<std::size_t>(pictures.positions[i] - lease.begin);
    labels[row] = pictures.labels[i];
    std::memcpy(chunk.step[kPicture].data() + row * bytes, pictures.pixels.data() + i * bytes,
                bytes);
  }
  std::memcpy(chunk.step[kLabel].data(), labels.data(), rows * sizeof(std::int64_t));
  std::memcpy(chunk.step[kPosition].data(), positions.data(), rows * sizeof(std::int64_t));
  return chunk;
}

PictureFeed::PictureFeed(const FeedOptions& options)
    : options_(options), ledger_(options.size, options.epochs) {}

std::int64_t PictureFeed::batch_end(std::int64_t begin) const {
  return std::min(options_.size, (begin / options_.batch + 1) * options_.batch);
}

bool PictureFeed::has_room(const LeaseLedger::Place& place) const {
  if (static_cast<std::int64_t>(slots_.size()) <= options_.ahead) return true;
  const PictureBatch& last = slots_.back().out;
  return place.epoch < last.epoch ||
         (place.epoch == last.epoch && place.position < last.begin + last.positions);
}

// Where a position goes; batches are begun in the order of their positions.
PictureFeed::Slot& PictureFeed::slot_of(const LeaseLedger::Place& place) {
  for (Slot& slot : slots_)
    if (slot.out.epoch == place.epoch && place.position >= slot.out.begin &&
        place.position < slot.out.begin + slot.out.positions)
      return slot;
  Slot slot;
  slot.out.epoch = place.epoch;
  slot.out.begin = place.position;
  slot.out.positions = batch_end(place.position) - place.position;
  slot.out.batch =
      replay::Batch(picture_columns(options_.side, options_.channels), slot.out.positions);
  slot.leases.resize(static_cast<std::size_t>(slot.out.positions));
  slot.missing = slot.out.positions;
  return slots_.emplace_back(std::move(slot));
}

std::optional<Lease> PictureFeed::lease(const DataActor& actor) {
  const std::lock_guard lock(mutex_);
  if (const auto over = ended_.find(actor.index);
      over != ended_.end() && actor.incarnation <= over->second)
    return std::nullopt;
  if (actor.incarnation > 0) end_locked({actor.index, actor.incarnation - 1});
  const auto place = ledger_.next();
  if (!place || !has_room(*place)) return std::nullopt;
  const PictureBatch& batch = slot_of(*place).out;
  const auto [worker, fresh] = workers_.try_emplace(actor, next_worker_);
  if (fresh) ++next_worker_;
  return ledger_.lease(worker->second,
                       std::min(options_.lease, batch.begin + batch.positions - place->position));
}

Result<bool> PictureFeed::take(const replay::Chunk& chunk) {
  const replay::ChunkHeader& header = chunk.header;
  const std::span<const std::int64_t> labels = integers(chunk.step[kLabel]);
  const std::span<const std::int64_t> positions = integers(chunk.step[kPosition]);
  const auto begin = static_cast<std::int64_t>(header.first_step);
  const auto refuse = [&](const std::string& what) {
    return fail(ErrorCode::kCorrupt, "pictures " + range(begin, begin + header.steps) +
                                         " of epoch " + std::to_string(header.episode) + ": " +
                                         what);
  };
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < kCorruptLabel || labels[i] >= options_.classes)
      return refuse("label " + std::to_string(labels[i]) + " is none of " +
                    std::to_string(options_.classes) + " classes");
    if (positions[i] != begin + static_cast<std::int64_t>(i))
      return refuse("position " + std::to_string(positions[i]) + " stands out of turn");
  }
  const std::lock_guard lock(mutex_);
  const auto stale = [&] {
    ++stale_;
    return false;
  };
  if (header.learner_epoch != options_.learner_epoch) return stale();
  const auto worker = workers_.find({header.worker, header.incarnation});
  if (worker == workers_.end()) return stale();
  const std::optional<Lease> lease = ledger_.find(header.sequence, worker->second);
  if (!lease) return stale();
  if (lease->epoch != header.episode || lease->begin != begin || lease->end != begin + header.steps)
    return refuse("the lease was of " + range(lease->begin, lease->end) + " of epoch " +
                  std::to_string(lease->epoch));
  Slot& slot = slot_of({lease->epoch, lease->begin});
  const auto first = static_cast<std::size_t>(begin - slot.out.begin);
  for (const std::size_t column : {kPicture, kLabel}) {
    const std::vector<std::uint8_t>& from = chunk.step[column];
    const auto to = slot.out.batch.bytes(static_cast<int>(column));
    std::copy(from.begin(), from.end(),
              to.begin() + static_cast<std::ptrdiff_t>(first * (from.size() / header.steps)));
  }
  std::fill_n(slot.leases.begin() + static_cast<std::ptrdiff_t>(first), header.steps, lease->id);
  slot.missing -= header.steps;
  slot.corrupt += std::count(labels.begin(), labels.end(), kCorruptLabel);
  ledger_.hand_over(lease->id, kOwn);
  if (slots_.front().missing == 0) whole_.notify_all();
  return true;
}

std::int64_t PictureFeed::end(const DataActor& actor) {
  const std::lock_guard lock(mutex_);
  return end_locked(actor);
}

std::int64_t PictureFeed::end_locked(const DataActor& actor) {
  std::uint32_t& over = ended_[actor.index];
  over = std::max(over, actor.incarnation);
  std::int64_t freed = 0;
  for (auto at = workers_.lower_bound({actor.index, 0});
       at != workers_.end() && at->first.index == actor.index && at->first.incarnation <= over;
       at = workers_.erase(at))
    freed += ledger_.release(at->second);
  released_ += static_cast<std::uint64_t>(freed);
  return freed;
}

// A batch may come out smaller than its positions: what could not be decoded is left out.
void PictureFeed::leave_out_corrupt(Slot& slot) const {
  replay::Batch& full = slot.out.batch;
  const auto* labels = reinterpret_cast<const std::int64_t*>(full.bytes(kLabel).data());
  replay::Batch good(full.columns(), slot.out.positions - slot.corrupt);
  std::size_t row = 0;
  for (std::size_t i = 0; i < slot.leases.size(); ++i) {
    if (labels[i] == kCorruptLabel) continue;
    for (int column = 0; column < 2; ++column) {
      const std::size_t bytes = full.columns()[static_cast<std::size_t>(column)].bytes();
      std::memcpy(good.bytes(column).data() + row * bytes, full.bytes(column).data() + i * bytes,
                  bytes);
    }
    ++row;
  }
  full = std::move(good);
}

const PictureBatch* PictureFeed::next(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::unique_lock lock(mutex_);
  while (whole_.wait_until(lock, deadline,
                           [&] { return !slots_.empty() && slots_.front().missing == 0; })) {
    Slot& slot = slots_.front();
    if (slot.corrupt == slot.out.positions) {
      commit_front();  // nothing of it can be trained on
      continue;
    }
    if (slot.corrupt > 0 && !std::exchange(slot.compacted, true)) leave_out_corrupt(slot);
    const std::int64_t end = slot.out.begin + slot.out.positions;
    const bool last = end == options_.size;
    slot.out.after = {slot.out.epoch + (last ? 1 : 0), last ? 0 : end,
                      corrupt_ + static_cast<std::uint64_t>(slot.corrupt)};
    return &slot.out;
  }
  return nullptr;
}

void PictureFeed::commit() {
  const std::lock_guard lock(mutex_);
  commit_front();
}

void PictureFeed::commit_front() {
  const Slot& slot = slots_.front();
  std::vector<Consumed> consumed;
  for (std::size_t i = 0; i < slot.leases.size(); ++i)
    consumed.push_back({slot.leases[i], slot.out.begin + static_cast<std::int64_t>(i)});
  ledger_.commit(consumed);
  corrupt_ += static_cast<std::uint64_t>(slot.corrupt);
  slots_.pop_front();
}

FeedFigures PictureFeed::figures() const {
  const std::lock_guard lock(mutex_);
  FeedFigures figures{.epoch = ledger_.epoch(),
                      .committed = ledger_.committed(ledger_.epoch()),
                      .leased = ledger_.leased(),
                      .ready = 0,
                      .corrupt = corrupt_,
                      .stale = stale_,
                      .released = released_};
  for (const Slot& slot : slots_) figures.ready += slot.missing == 0 ? 1 : 0;
  return figures;
}

std::string PictureFeed::waiting_on() const {
  const std::lock_guard lock(mutex_);
  if (slots_.empty()) return ledger_.finished() ? "" : "a data actor that asks for work";
  const Slot& slot = slots_.front();
  if (slot.missing == 0) return "";
  return "pictures " + range(slot.out.begin, slot.out.begin + slot.out.positions) + " of epoch " +
         std::to_string(slot.out.epoch) + ", " + std::to_string(slot.missing) + " of them missing";
}

bool PictureFeed::finished() const {
  const std::lock_guard lock(mutex_);
  return ledger_.finished();
}

DataPlace PictureFeed::place() const {
  const std::lock_guard lock(mutex_);
  return {ledger_.epoch(), ledger_.committed(ledger_.epoch()), corrupt_};
}

void PictureFeed::begin_at(const DataPlace& place) {
  const std::lock_guard lock(mutex_);
  ledger_.begin_at({place.epoch, place.committed});
  corrupt_ = place.corrupt;
}

std::vector<std::uint8_t> PictureFeed::save() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint8_t> bytes;
  replay::ByteWriter out(bytes);
  out.put(options_.fingerprint);
  out.put(corrupt_);
  ledger_.save(out);
  return bytes;
}

Result<void> PictureFeed::load(const std::vector<std::uint8_t>& bytes) {
  const std::lock_guard lock(mutex_);
  replay::ByteReader in(bytes);
  const auto fingerprint = in.take<std::uint64_t>(), corrupt = in.take<std::uint64_t>();
  if (!in.ok()) return fail(ErrorCode::kCorrupt, "the saved place in the data set is too short");
  if (fingerprint != options_.fingerprint)
    return fail(ErrorCode::kInvalidArgument,
                "the data set is another one than the run was begun with; put that back, or begin "
                "a new run in another directory");
  if (auto loaded = ledger_.load(in); !loaded) return loaded;
  // What a feed commits is whole from the front: a hole would be waited for in vain.
  if (const auto place = ledger_.next();
      place && *place != LeaseLedger::Place{ledger_.epoch(), ledger_.committed(ledger_.epoch())})
    return fail(ErrorCode::kCorrupt, "the saved place in the data set has holes");
  if (!in.finished())
    return fail(ErrorCode::kCorrupt, "the saved place in the data set is too long");
  corrupt_ = corrupt;
  return {};
}

}  // namespace troupe::learners::data
