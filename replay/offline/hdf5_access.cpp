// Attributes, links and writing. Reading columns is in hdf5_column.cpp.
#include "replay/offline/hdf5_access.hpp"

#include <algorithm>
#include <mutex>

namespace troupe::replay::hdf5 {
namespace {

constexpr std::uint64_t kChunkBytes = 64 * 1024;

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

}  // namespace

std::string path_of(const H5::Group& group, const std::string& name) {
  const std::string parent = group.getObjName();
  return (parent == "/" ? "" : parent.substr(1) + "/") + name;
}

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

}  // namespace troupe::replay::hdf5
