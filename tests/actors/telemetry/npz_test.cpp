// Archives of arrays: there and back, through numpy in both directions, and damaged.
#include "actors/telemetry/npz.hpp"

#include <gmock/gmock.h>

#include "tests/support/python.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::actors::telemetry {
namespace {

using Reals = std::vector<double>;
using Integers = std::vector<std::int64_t>;

NpzArrays example() {
  return {{"x", {{3}, Integers{1, -2, 1ll << 60}}},
          {"y", {{2, 2}, Reals{0.5, -1e300, 3, 4}}},
          {"none", {{0, 4}, Reals{}}}};
}

TEST(Npz, SurvivesTheWayThereAndBack) {
  const auto bytes = encode_npz(example());
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto arrays = decode_npz(*bytes);
  ASSERT_TRUE(arrays) << arrays.error().message;
  ASSERT_EQ(arrays->size(), 3u);
  EXPECT_EQ((*arrays)[0].first, "x");
  EXPECT_EQ(std::get<Integers>((*arrays)[0].second.values), (Integers{1, -2, 1ll << 60}));
  EXPECT_EQ((*arrays)[1].second.shape, (Integers{2, 2}));
  EXPECT_EQ(std::get<Reals>((*arrays)[1].second.values), (Reals{0.5, -1e300, 3, 4}));
  EXPECT_EQ((*arrays)[2].second.shape, (Integers{0, 4}));
}

TEST(Npz, NumpyReadsIt) {
  const TemporaryFolder directory;
  write_content(directory / "a.npz", *encode_npz(example()));
  const PythonRun python =
      run_python("import numpy as np, zipfile; p='" + (directory / "a.npz").string() +
                 "'; assert zipfile.ZipFile(p).testzip() is None; a=np.load(p);"
                 "assert sorted(a.files)==['none','x','y'], a.files;"
                 "assert a['x'].dtype==np.int64 and a['x'].tolist()==[1,-2,2**60];"
                 "assert a['y'].dtype==np.float64 and a['y'].tolist()==[[0.5,-1e300],[3,4]];"
                 "assert a['none'].shape==(0,4)");
  EXPECT_EQ(python.status, 0) << python.output;
}

TEST(Npz, ReadsWhatNumpyWrites) {
  const TemporaryFolder directory;
  const PythonRun python =
      run_python("import numpy as np; np.savez('" + (directory / "a.npz").string() +
                 "', x=np.array([1,2,3]), y=np.array([[1.5,2.5]]))");
  ASSERT_EQ(python.status, 0) << python.output;
  const auto arrays = decode_npz(content_of(directory / "a.npz"));
  ASSERT_TRUE(arrays) << arrays.error().message;
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_EQ(std::get<Integers>((*arrays)[0].second.values), (Integers{1, 2, 3}));
  EXPECT_EQ((*arrays)[1].second.shape, (Integers{1, 2}));
  EXPECT_EQ(std::get<Reals>((*arrays)[1].second.values), (Reals{1.5, 2.5}));
}

TEST(Npz, EveryTruncationIsRefused) {
  const std::string bytes = *encode_npz(example());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto arrays = decode_npz(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(arrays) << size;
    EXPECT_EQ(arrays.error().code, ErrorCode::kCorrupt);
  }
}

TEST(Npz, NoDamagedByteChangesAValueUnnoticed) {
  const std::string good = *encode_npz(example());
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x41);
    const auto arrays = decode_npz(bytes);  // must not read out of bounds, whatever it says
    if (!arrays || arrays->size() != 3) continue;
    EXPECT_EQ(std::get<Reals>((*arrays)[1].second.values), (Reals{0.5, -1e300, 3, 4})) << i;
  }
}

TEST(Npz, AShapeThatDisagreesWithItsValuesIsRefused) {
  EXPECT_FALSE(encode_npz({{"x", {{2, 2}, Reals{1, 2, 3}}}}));
  EXPECT_FALSE(encode_npz({{"x", {{-1}, Reals{}}}}));
  EXPECT_FALSE(encode_npz({{"x", {{1ll << 40, 1ll << 40}, Reals{}}}}));
}

}  // namespace
}  // namespace troupe::actors::telemetry
