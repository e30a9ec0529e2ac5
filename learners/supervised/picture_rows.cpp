#include "learners/supervised/picture_rows.hpp"

#include <string>

#include "learners/data/picture_columns.hpp"

namespace troupe::learners {

Result<PictureRows> picture_rows(const replay::Batch& batch, const PictureSpec& pictures) {
  for (const Column& wanted : data::picture_columns(pictures.side, pictures.channels)) {
    const int index = batch.find(wanted.name);
    if (index < 0 || batch.columns()[static_cast<std::size_t>(index)] != wanted)
      return fail(ErrorCode::kInvalidArgument,
                  "The batch has no column '" + wanted.name + "' of the pictures' type and shape.");
  }
  const PictureRows rows{
      .count = batch.items(),
      .global_count = batch.items(),
      .side = pictures.side,
      .channels = pictures.channels,
      .pixels = batch.bytes(batch.find("picture")).data(),
      .labels = reinterpret_cast<const std::int64_t*>(batch.bytes(batch.find("label")).data())};
  return check_labels(rows, pictures.classes).map([&] { return rows; });
}

Result<void> check_labels(const PictureRows& rows, std::int64_t classes) {
  for (std::int64_t i = 0; i < rows.count; ++i)
    if (rows.labels[i] < 0 || rows.labels[i] >= classes)
      return fail(ErrorCode::kInvalidArgument, "row " + std::to_string(i) + " has the label " +
                                                   std::to_string(rows.labels[i]) + " of " +
                                                   std::to_string(classes) + " classes");
  return {};
}

}  // namespace troupe::learners
