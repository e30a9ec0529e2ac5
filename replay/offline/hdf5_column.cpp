// Reading columns. What a file says of itself is compared with its own size first.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "replay/offline/hdf5_access.hpp"

namespace troupe::replay::hdf5 {
namespace {

constexpr std::uint64_t kDeflateAtMost = 1032;  // bytes out of one, zlib's technical note
constexpr int kMostDimensions = 8;

std::uint64_t file_bytes(const H5::DataSet& set) {
  const hid_t file = H5Iget_file_id(set.getId());
  hsize_t bytes = 0;
  const herr_t known = H5Fget_filesize(file, &bytes);
  H5Fclose(file);
  if (known < 0) throw Hdf5Fault(ErrorCode::kIo, "its size is not known");
  return bytes;
}

// Refuses data outside the file, and more of it than the file can hold.
void check_storage(const H5::DataSet& set, const std::string& name, std::uint64_t bytes) {
  const H5::DSetCreatPropList properties = set.getCreatePlist();
  const H5D_layout_t layout = properties.getLayout();
  if (layout == H5D_VIRTUAL || (layout == H5D_CONTIGUOUS && properties.getExternalCount() > 0))
    throw Hdf5Fault(ErrorCode::kCorrupt,
                    "dataset '" + name + "' keeps its data in other files, which are not read");
  const std::uint64_t stored = std::min<std::uint64_t>(set.getStorageSize(), file_bytes(set));
  const bool packed = properties.getNfilters() > 0;
  if (bytes / (packed ? kDeflateAtMost : 1) > stored)
    throw Hdf5Fault(ErrorCode::kCorrupt, "dataset '" + name + "' says " + std::to_string(bytes) +
                                             " bytes of data, of which " + std::to_string(stored) +
                                             " stored bytes can be no source");
}

template <class To>
void narrow(const std::vector<std::int64_t>& wide, const std::string& name,
            std::vector<std::uint8_t>& out) {
  const std::size_t before = out.size();
  out.resize(before + wide.size() * sizeof(To));
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (!std::in_range<To>(wide[i]))
      throw Hdf5Fault(
          ErrorCode::kCorrupt,
          "dataset '" + name + "' holds " + std::to_string(wide[i]) + ", which its column cannot");
    const auto value = static_cast<To>(wide[i]);
    std::memcpy(out.data() + before + i * sizeof(To), &value, sizeof value);
  }
}

}  // namespace

StoredColumn::StoredColumn(const H5::Group& group, const std::string& name)
    : name_(path_of(group, name)) {
  if (!has_dataset(group, name))
    throw Hdf5Fault(ErrorCode::kCorrupt, "dataset '" + name_ + "' is missing");
  set_ = group.openDataSet(name);
  const H5T_class_t kind = set_.getTypeClass();
  if (kind != H5T_FLOAT && kind != H5T_INTEGER && kind != H5T_ENUM)
    throw Hdf5Fault(ErrorCode::kCorrupt, "dataset '" + name_ + "' holds no numbers");
  floating_ = kind == H5T_FLOAT;
  const H5::DataSpace space = set_.getSpace();
  const int dimensions = space.getSimpleExtentNdims();
  if (dimensions < 1 || dimensions > kMostDimensions)
    throw Hdf5Fault(ErrorCode::kCorrupt, "dataset '" + name_ + "' has " +
                                             std::to_string(dimensions) +
                                             " dimensions; 1 to 8 are read");
  extents_.resize(static_cast<std::size_t>(dimensions));
  space.getSimpleExtentDims(extents_.data());
  rows_ = extents_[0];
  std::uint64_t bytes = set_.getDataType().getSize();
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    if (extents_[i] != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / extents_[i])
      throw Hdf5Fault(ErrorCode::kCorrupt, "dataset '" + name_ + "' says more than 2^64 bytes");
    bytes *= extents_[i];
    if (i > 0) elements_ *= extents_[i];
  }
  check_storage(set_, name_, bytes);
}

void StoredColumn::read_as(std::uint64_t first, std::uint64_t count, const H5::DataType& type,
                           void* to) const {
  if (first > rows_ || count > rows_ - first)
    throw Hdf5Fault(ErrorCode::kCorrupt, "dataset '" + name_ + "' has " + std::to_string(rows_) +
                                             " rows; row " + std::to_string(first + count) +
                                             " is needed");
  if (count == 0 || elements_ == 0) return;
  std::vector<hsize_t> start(extents_.size(), 0), extent = extents_;
  start[0] = first;
  extent[0] = count;
  const H5::DataSpace file = set_.getSpace();
  file.selectHyperslab(H5S_SELECT_SET, extent.data(), start.data());
  const H5::DataSpace memory(static_cast<int>(extent.size()), extent.data());
  try {
    set_.read(to, type, memory, file);
  } catch (const H5::Exception& exception) {
    throw Hdf5Fault(ErrorCode::kCorrupt,
                    "dataset '" + name_ + "' cannot be read: " + exception.getDetailMsg());
  }
}

void StoredColumn::read(std::uint64_t first, std::uint64_t count, DType type,
                        std::vector<std::uint8_t>& out) const {
  const bool to_float = type == DType::kF32 || type == DType::kF64;
  if (floating_ && !to_float)
    throw Hdf5Fault(ErrorCode::kCorrupt,
                    "dataset '" + name_ + "' holds floats; its column is " + name_of(type));
  const std::size_t total = static_cast<std::size_t>(std::min(count, rows_) * elements_);
  if (to_float || type == DType::kU64 || set_.getDataType() == little_endian(type)) {
    const std::size_t before = out.size();
    out.resize(before + total * size_of(type));
    return read_as(first, count, little_endian(type), out.data() + before);
  }
  // Through 64 bits, because HDF5 clips what does not fit without a word.
  std::vector<std::int64_t> wide(total);
  read_as(first, count, H5::PredType::NATIVE_INT64, wide.data());
  if (type == DType::kU8) return narrow<std::uint8_t>(wide, name_, out);
  if (type == DType::kI32) return narrow<std::int32_t>(wide, name_, out);
  if (type == DType::kU32) return narrow<std::uint32_t>(wide, name_, out);
  narrow<std::int64_t>(wide, name_, out);
}

std::vector<float> StoredColumn::read_floats(std::uint64_t first, std::uint64_t count) const {
  std::vector<std::uint8_t> bytes;
  read(first, count, DType::kF32, bytes);
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::uint8_t> StoredColumn::read_flags() const {
  const std::vector<float> values = read_floats(0, rows_);
  std::vector<std::uint8_t> flags(values.size());
  std::transform(values.begin(), values.end(), flags.begin(),
                 [](float value) { return static_cast<std::uint8_t>(value != 0); });
  return flags;
}

}  // namespace troupe::replay::hdf5
