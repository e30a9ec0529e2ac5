// Chunks on disk: room is found and given back, a full disk is an error, and a table works as in
// memory.
#include "replay/disk_tier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "replay/checkpoint.hpp"
#include "tests/replay/pixel_support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Kind = InsertOutcome::Kind;

TEST(DiskTier, NeverGivesABytesTwiceAndJoinsWhatIsFreed) {
  auto tier = DiskTier::create(::testing::TempDir(), 1 << 20).value();
  Random random(1);
  std::map<std::uint8_t*, std::size_t> held;
  for (int i = 0; i < 20000; ++i) {
    if (held.empty() || random.below(5) > 1) {
      const std::size_t bytes = 1 + random.below(5000);
      std::uint8_t* data = tier->allocate(bytes);
      if (data == nullptr) {
        const auto victim = std::next(held.begin(), static_cast<long>(random.below(held.size())));
        tier->free(victim->first, victim->second);
        held.erase(victim);
        continue;
      }
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0U);
      const auto after = held.lower_bound(data);
      ASSERT_TRUE(after == held.end() || data + bytes <= after->first);
      ASSERT_TRUE(after == held.begin() ||
                  std::prev(after)->first + std::prev(after)->second <= data);
      std::memset(data, i & 0xff, bytes);
      held.emplace(data, bytes);
    } else {
      const auto victim = std::next(held.begin(), static_cast<long>(random.below(held.size())));
      tier->free(victim->first, victim->second);
      held.erase(victim);
    }
  }
  for (const auto& [data, bytes] : held) tier->free(data, bytes);
  EXPECT_EQ(tier->used(), 0U);
  EXPECT_NE(tier->allocate(1 << 20), nullptr);  // one extent again
}

TEST(DiskTier, SaysWithNumbersThatTheDiskIsFull) {
  const fs::path folder = fs::path(::testing::TempDir()) / "tiny";
  fs::create_directory(folder);
  if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "mounting a small file system needs root";
  const auto full = DiskTier::create(folder, 4 << 20);
  EXPECT_TRUE(DiskTier::create(folder, 512 << 10));
  // What was refused is given back: the half that fits still does.
  EXPECT_TRUE(DiskTier::create(folder, 512 << 10));
  TableOptions options = small_options();
  options.disk = {folder.string(), 8 << 20};
  const auto table = Table::create(options, pixel_signature(1));
  ::umount(folder.c_str());
  fs::remove(folder);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kIo);
  EXPECT_THAT(full.error().message,
              AllOf(HasSubstr("4194304 bytes"), HasSubstr(folder.string()),
                    HasSubstr("No space left"), HasSubstr("1048576 are free")));
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::kIo);
}

TEST(DiskTier, NamesAFolderThatIsNotThere) {
  const auto missing = DiskTier::create("/nowhere/at/all", 1 << 20);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("/nowhere/at/all"));
}

TEST(DiskTier, HoldsATablesPayloadWithinItsBytes) {
  TableOptions on_disk = small_options(2), in_memory = on_disk;
  in_memory.capacity_bytes = 64 << 10;
  on_disk.disk = {::testing::TempDir(), 64 << 10};
  auto disk = Table::create(on_disk, pixel_signature(3)).value();
  auto memory = Table::create(in_memory, pixel_signature(3)).value();
  std::vector<SampledItems> late;  // keeps chunks that have left the table
  for (std::uint32_t i = 0; i < 600; ++i) {
    const auto chunk =
        pixel_chunk({.sequence = i,
                     .episode = i / 4,
                     .first_step = i % 4 * 6,
                     .steps = 6,
                     .end = i % 4 == 3 ? EpisodeEnd::kTruncated : EpisodeEnd::kContinues});
    ASSERT_EQ(disk->try_insert(chunk).kind, Kind::kAccepted);
    ASSERT_EQ(memory->try_insert(chunk).kind, Kind::kAccepted);
    if (i < 2) continue;
    const Batch a = take_batch(*disk, 8), b = take_batch(*memory, 8);
    const auto left = a.bytes(a.find("pixels")), right = b.bytes(b.find("pixels"));
    ASSERT_TRUE(std::equal(left.begin(), left.end(), right.begin()));
    if (i % 100 != 50) continue;
    late.push_back(disk->try_sample(8).value());
    take_batch(*memory, 8);
  }
  const TableStatistics s = disk->statistics(), other = memory->statistics();
  EXPECT_EQ(s.bytes_held, other.bytes_held);
  EXPECT_LE(s.bytes_held, std::uint64_t{64} << 10);
  EXPECT_GT(s.disk_bytes, s.bytes_held / 2);  // what `late` holds pushes some into memory
  EXPECT_EQ(other.disk_bytes, 0U);
  EXPECT_LT(s.memory_bytes, other.memory_bytes - s.disk_bytes / 2);
  for (const SampledItems& items : late) {
    Batch batch(disk->batch_columns(), 8);
    EXPECT_TRUE(disk->gather(items, batch));
  }
  // Through a checkpoint the payload goes to disk again.
  const fs::path path = fs::path(::testing::TempDir()) / "disk.table";
  ASSERT_TRUE(write_checkpoint(disk->snapshot(), path));
  auto restored = Table::create(on_disk, pixel_signature(3)).value();
  const auto notes = restore(*restored, path);
  ASSERT_TRUE(notes) << notes.error().message;
  EXPECT_EQ(restored->statistics().disk_bytes, restored->statistics().bytes_held);
  fs::remove(path);
  const SampledItems outliving = disk->try_sample(8).value();
  disk.reset();
  Batch batch(memory->batch_columns(), 8);
  EXPECT_TRUE(memory->gather(outliving, batch));
}

}  // namespace
}  // namespace troupe::replay
