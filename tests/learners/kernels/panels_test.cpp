// Layout changes: every element arrives, padding is zero, and the pieces stay apart.
#include "learners/kernels/panels.hpp"

#include "tests/learners/kernels/matrices.hpp"

namespace troupe::learners::kernels {
namespace {

TEST(Panels, PartsCoverARangeWithoutOverlap) {
  for (const std::int64_t count : {0, 1, 5, 16, 257})
    for (const std::int64_t parts : {1, 2, 3, 7}) {
      std::int64_t next = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        const Range range = part_of(count, part, parts);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.size(), count / parts + 1);
        next = range.end;
      }
      EXPECT_EQ(next, count);
    }
}

TEST(Panels, ArenaGivesAlignedZeroedPiecesThatDoNotOverlap) {
  Arena arena;
  float* one = arena.floats(5);
  float* two = arena.floats(1 << 20);  // more than is left of a block
  float* three = arena.floats(3);
  for (float* piece : {one, two, three})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece) % 64, 0U);
  std::fill_n(one, 5, 1.0F);
  std::fill_n(three, 3, 2.0F);
  EXPECT_EQ(std::count(two, two + (1 << 20), 0.0F), 1 << 20);
  EXPECT_EQ(one[4], 1);
}

TEST(Panels, LoadItemsPutsItemsIntoLanesAndZerosBehindThem) {
  Random random(1);
  for (const std::int64_t items : {1L, 3L, kPanel, kPanel + 1, 3 * kPanel - 1}) {
    Arena arena;
    const Matrix rows = random_matrix(items, 5, random);
    const Panels panels = arena.panels(8, items);
    for (std::int64_t i = 0; i < panels.stride * panels_of(items); ++i) panels.data[i] = 9;
    load_items(rows.values.data(), 5, items, panels, 2, all_panels(items));
    for (std::int64_t item = 0; item < panels_of(items) * kPanel; ++item)
      for (std::int64_t f = 0; f < 8; ++f) {
        const float wanted = f < 2 || f >= 7 ? 9.0F : item < items ? rows.at(item, f - 2) : 0.0F;
        ASSERT_EQ(panels.at(f, item), wanted) << items << " " << item << " " << f;
      }
  }
}

TEST(Panels, TransposeSwapsFeaturesAndItems) {
  Random random(2);
  const std::int64_t features = kPanel + 7, items = 2 * kPanel + 5;
  Arena arena;
  const Matrix matrix = random_matrix(features, items, random);
  const Panels from = to_panels(matrix, arena);
  for (const Range rows :
       {Range{0, 1}, Range{0, kPanel}, Range{4, 4 + kPanel}, Range{kPanel, kPanel + 7}})
    for (const Range panels : {Range{0, 3}, Range{1, 3}}) {
      std::vector<float> to(static_cast<std::size_t>(panels.size() * kPanel * kPanel), 9.0F);
      transpose(from, rows, panels, to.data());
      for (std::int64_t i = 0; i < panels.size() * kPanel; ++i)
        for (std::int64_t f = 0; f < kPanel; ++f) {
          const std::int64_t item = panels.begin * kPanel + i;
          ASSERT_EQ(to[static_cast<std::size_t>(i * kPanel + f)],
                    f < rows.size() && item < items ? matrix.at(rows.begin + f, item) : 0.0F);
        }
    }
}

TEST(Panels, PackColumnsCopiesARangeOfColumns) {
  Random random(3);
  const Matrix matrix = random_matrix(9, 3 * kPanel + 2, random);
  for (const Range columns : {Range{0, matrix.columns}, Range{4, 5}, Range{1, 2 * kPanel + 4}}) {
    Arena arena;
    const Panels to = arena.panels(9, columns.size());
    for (std::int64_t i = 0; i < to.stride * panels_of(columns.size()); ++i) to.data[i] = 9;
    // In two parts, as two members of a team do it.
    for (std::int64_t part = 0; part < 2; ++part)
      pack_columns(matrix.values.data(), matrix.columns, columns.begin, columns.size(), to,
                   part_of(panels_of(columns.size()), part, 2));
    for (std::int64_t row = 0; row < 9; ++row)
      for (std::int64_t column = 0; column < panels_of(columns.size()) * kPanel; ++column)
        ASSERT_EQ(to.at(row, column),
                  column < columns.size() ? matrix.at(row, columns.begin + column) : 0.0F);
  }
}

}  // namespace
}  // namespace troupe::learners::kernels
