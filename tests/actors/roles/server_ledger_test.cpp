// The count of updates over the lives of a parameter server, and the mark that outlives one.
#include "actors/roles/server_ledger.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "actors/roles/update_mark.hpp"
#include "envs/spec/random.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::actors {
namespace {

TEST(ServerLedger, CountsWhatALifeAppliedAndWhatTheNextOneLacks) {
  ServerLedger ledger;
  EXPECT_EQ(ledger.began(0), 0U);
  ledger.says({10, 10});
  EXPECT_EQ(ledger.counts(), (UpdateCounts{10, 10, 0}));
  ledger.says({7, 7});  // overtaken
  EXPECT_EQ(ledger.counts().applied, 10U);
  EXPECT_EQ(ledger.began(6), 4U);
  EXPECT_EQ(ledger.counts(), (UpdateCounts{10, 6, 4}));
  ledger.says({8, 2});
  EXPECT_EQ(ledger.counts(), (UpdateCounts{12, 8, 4}));
  EXPECT_EQ(ledger.counts({7, 1}), (UpdateCounts{11, 7, 4}));  // of a cut before that
  EXPECT_EQ(ledger.began(8), 0U);
  EXPECT_EQ(ledger.counts(), (UpdateCounts{12, 8, 4}));
}

TEST(ServerLedger, GoesOnFromACheckpoint) {
  ServerLedger ledger(UpdateCounts{12, 8, 4});
  EXPECT_EQ(ledger.began(8), 0U);
  ledger.says({9, 1});
  EXPECT_EQ(ledger.counts(), (UpdateCounts{13, 9, 4}));
}

// A server that applies, writes snapshots and dies, against its own count.
TEST(ServerLedger, IsExactWhateverDiesWhenever) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    ServerLedger ledger;
    ServerLife life, snapshot;
    std::uint64_t sent = 0;
    for (int i = 0; i < 500; ++i) {
      switch (random.below(20)) {
        case 0:
          ledger.says(life);  // its mark
          life = {snapshot.version, 0};
          ledger.began(life.version);
          break;
        case 1:
          snapshot = life;
          break;
        case 2:
          ledger.says(life);
          break;
        default:
          ++sent;
          ++life.version;
          ++life.applied;
      }
    }
    ledger.says(life);
    const UpdateCounts counts = ledger.counts();
    EXPECT_EQ(counts.sent, sent);
    EXPECT_EQ(counts.sent, counts.applied + counts.rolled_back);
  }
}

TEST(UpdateMark, ReadsTheNewestAndNothingElse) {
  const TemporaryFolder folder;
  const auto path = UpdateMark::path_of(folder.path(), 1, 3);
  EXPECT_EQ(path.filename(), "parameter_server-1.3.applied");
  EXPECT_FALSE(UpdateMark::read(path));
  const auto mark = UpdateMark::create(path, {5, 0}).value();
  EXPECT_EQ(UpdateMark::read(path), (ServerLife{5, 0}));
  mark->set({std::uint64_t{1} << 40, 7});
  EXPECT_EQ(UpdateMark::read(path), (ServerLife{std::uint64_t{1} << 40, 7}));
  std::filesystem::resize_file(path, 15);
  EXPECT_FALSE(UpdateMark::read(path));
  EXPECT_FALSE(UpdateMark::create(folder / "missing" / "x", {}));
}

}  // namespace
}  // namespace troupe::actors
