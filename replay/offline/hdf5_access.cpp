// Implements the access to HDF5. What a file says of itself is compared with its own size first.
#include "replay/offline/hdf5_access.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>

namespace troupe::replay::hdf5 {
namespace {

constexpr std::uint64_t kChunkBytes = 64 * 1024;
constexpr std::uint64_t kDeflateAtMost = 1032;  // bytes out of one, zlib's technical note
constexpr int kMostDimensions = 8;

const H5::PredType& little_endian(DType type) {
  switch (type) {
    case DType::kF32:
      return H5::PredType::IEEE_F32LE;
    case DType::kF64:
      return H5::PredType::IEEE_F64LE;
    case DType::kU8:
      return H5::PredType::STD_U8LE;
    case DType::kI32:
      return H5::PredType::STD_I32LE;
    case DType::kI64:
      return H5::PredType::STD_I64LE;
    case DType::kU32:
      return H5::PredType::STD_U32LE;
    case DType::kU64:
      return H5::PredType::STD_U64LE;
  }
  throw Hdf5Fault(ErrorCode::kInternal, "there is no such element type");
}

// The boolean of h5py: an enumeration of bytes.
H5::EnumType boolean_type() {
  H5::EnumType type(H5::PredType::NATIVE_INT8);
  std::int8_t value = 0;
  type.insert("FALSE", &value);
  value = 1;
  type.insert("TRUE", &value);
  return type;
}

H5::DSetCreatPropList chunked(const std::vector<hsize_t>& extents, std::size_t element_bytes,
                              int level) {
  std::vector<hsize_t> chunk = extents;
  std::uint64_t row = element_bytes;
  for (std::size_t i = 1; i < chunk.size(); ++i) row *= std::max<hsize_t>(1, chunk[i]);
  chunk[0] = std::clamp<hsize_t>(kChunkBytes / row, 1, std::max<hsize_t>(1, extents[0]));
  for (hsize_t& extent : chunk) extent = std::max<hsize_t>(1, extent);
  H5::DSetCreatPropList properties;
  properties.setChunk(static_cast<int>(chunk.size()), chunk.data());
  if (level > 0) {
    properties.setShuffle();
    properties.setDeflate(static_cast<unsigned>(level));
  }
  return properties;
}

void write_dataset(const H5::Group& group, const char* name, const H5::DataType& stored,
                   const H5::DataType& memory, const std::vector<hsize_t>& extents,
                   const void* bytes, int level) {
  const H5::DataSpace space(static_cast<int>(extents.size()), extents.data());
  const H5::DataSet set =
      group.createDataSet(name, stored, space, chunked(extents, stored.getSize(), level));
  if (extents[0] > 0) set.write(bytes, memory);
}

template <class T>
void put_scalar(const H5::H5Object& object, const char* name, const H5::PredType& stored,
                const H5::PredType& memory, const T& value) {
  object.createAttribute(name, stored, H5::DataSpace(H5S_SCALAR)).write(memory, &value);
}

// Attributes hold one value each here; an array would be written beyond it.
H5::Attribute one_value(const H5::H5Object& object, const char* name, H5T_class_t wanted) {
  H5::Attribute attribute = object.openAttribute(name);
  if (attribute.getSpace().getSimpleExtentNpoints() != 1 || attribute.getTypeClass() != wanted)
    throw Hdf5Fault(ErrorCode::kCorrupt, "attribute '" + std::string(name) + "' is not one " +
                                             (wanted == H5T_STRING ? "string" : "integer"));
  return attribute;
}

bool is_hard_link(const H5::Group& group, const std::string& name) {
  if (H5Lexists(group.getId(), name.c_str(), H5P_DEFAULT) <= 0) return false;
  H5L_info_t link;
  return H5Lget_info(group.getId(), name.c_str(), &link, H5P_DEFAULT) >= 0 &&
         link.type == H5L_TYPE_HARD;
}

bool has_type(const H5::Group& group, const std::string& name, H5O_type_t type) {
  return is_hard_link(group, name) && group.childObjType(name) == type;
}

std::string path_of(const H5::Group& group, const std::string& name) {
  const std::string parent = group.getObjName();
  return (parent == "/" ? "" : parent.substr(1) + "/") + name;
}

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

Result<void> guarded(const std::filesystem::path& path, const std::function<void()>& work) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  try {
    H5::Exception::dontPrint();
    work();
  } catch (const Hdf5Fault& fault) {
    return fail(fault.code, path.string() + ": " + fault.what());
  } catch (const H5::Exception& exception) {
    return fail(ErrorCode::kCorrupt, path.string() + ": HDF5 says of " + exception.getFuncName() +
                                         ": " + exception.getDetailMsg());
  }
  return {};
}

void put(const H5::H5Object& object, const char* name, std::uint64_t value) {
  put_scalar(object, name, H5::PredType::STD_U64LE, H5::PredType::NATIVE_UINT64, value);
}

void put(const H5::H5Object& object, const char* name, double value) {
  put_scalar(object, name, H5::PredType::IEEE_F64LE, H5::PredType::NATIVE_DOUBLE, value);
}

void put(const H5::H5Object& object, const char* name, const std::string& value) {
  H5::StrType type(H5::PredType::C_S1, H5T_VARIABLE);
  type.setCset(H5T_CSET_UTF8);
  object.createAttribute(name, type, H5::DataSpace(H5S_SCALAR)).write(type, value);
}

void put(const H5::H5Object& object, const char* name, const std::vector<double>& values) {
  const hsize_t count = values.size();
  object.createAttribute(name, H5::PredType::IEEE_F64LE, H5::DataSpace(1, &count))
      .write(H5::PredType::NATIVE_DOUBLE, values.data());
}

std::uint64_t get(const H5::H5Object& object, const char* name, std::uint64_t otherwise) {
  if (!object.attrExists(name)) return otherwise;
  std::uint64_t value = 0;
  one_value(object, name, H5T_INTEGER).read(H5::PredType::NATIVE_UINT64, &value);
  return value;
}

std::string get(const H5::H5Object& object, const char* name, const std::string& otherwise) {
  if (!object.attrExists(name)) return otherwise;
  const H5::Attribute attribute = one_value(object, name, H5T_STRING);
  std::string value;
  attribute.read(attribute.getStrType(), value);
  return value;
}

void write_column(const H5::Group& group, const Column& column, std::uint64_t rows,
                  const void* bytes, int level) {
  std::vector<hsize_t> extents{rows};
  for (const std::int64_t extent : column.shape) extents.push_back(static_cast<hsize_t>(extent));
  // Little-endian in memory too (replay/bytes.hpp asserts it).
  const H5::PredType& type = little_endian(column.dtype);
  write_dataset(group, column.name.c_str(), type, type, extents, bytes, level);
}

void write_flags(const H5::Group& group, const char* name, std::span<const std::uint8_t> flags,
                 int level) {
  const H5::EnumType type = boolean_type();
  write_dataset(group, name, type, type, {flags.size()}, flags.data(), level);
}

bool has_group(const H5::Group& group, const std::string& name) {
  return has_type(group, name, H5O_TYPE_GROUP);
}

bool has_dataset(const H5::Group& group, const std::string& name) {
  return has_type(group, name, H5O_TYPE_DATASET);
}

H5::Group open_group(const H5::Group& group, const std::string& name) {
  if (!has_group(group, name))
    throw Hdf5Fault(ErrorCode::kCorrupt, "group '" + path_of(group, name) + "' is missing");
  return group.openGroup(name);
}

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
