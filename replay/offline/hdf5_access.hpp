// The few things that episode files do with HDF5, on its C++ library: attributes, typed columns,
// and reading that believes no size before it is checked. Everything here throws Hdf5Fault or the
// library's own H5::Exception; `guarded` turns both into values. HDF5 keeps global state, so calls
// are made under `guarded`, which takes one lock for the process.
#pragma once

#include <H5Cpp.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "envs/spec/spec.hpp"

namespace troupe::replay::hdf5 {

struct Hdf5Fault : std::runtime_error {
  Hdf5Fault(ErrorCode error_code, const std::string& what)
      : std::runtime_error(what), code(error_code) {}
  ErrorCode code;
};

// Runs `work`; what it throws becomes an error whose message begins with the path.
Result<void> guarded(const std::filesystem::path& path, const std::function<void()>& work);

// How a column's elements lie in a file, and in memory.
const H5::PredType& little_endian(DType type);
// "episode_3/actions", for messages.
std::string path_of(const H5::Group& group, const std::string& name);

// Attributes of a file, group or dataset. Reading one that is missing gives `otherwise`; one of
// another kind is a fault.
void put(const H5::H5Object& object, const char* name, std::uint64_t value);
void put(const H5::H5Object& object, const char* name, double value);
void put(const H5::H5Object& object, const char* name, const std::string& value);
void put(const H5::H5Object& object, const char* name, const std::vector<double>& values);
std::uint64_t get(const H5::H5Object& object, const char* name, std::uint64_t otherwise);
std::string get(const H5::H5Object& object, const char* name, const std::string& otherwise);

// A dataset [rows, shape...] in `group`, in chunks of about 64 KiB, shuffled and deflated at
// `level` unless that is 0. `bytes` holds the rows as they lie in memory.
void write_column(const H5::Group& group, const Column& column, std::uint64_t rows,
                  const void* bytes, int level);
// The same of booleans as numpy understands them; one byte each, 0 or 1.
void write_flags(const H5::Group& group, const char* name, std::span<const std::uint8_t> flags,
                 int level);

// Whether `name` is a hard link to a group, or to a dataset, in `group`. Links that lead out of the
// file are as good as missing.
bool has_group(const H5::Group& group, const std::string& name);
bool has_dataset(const H5::Group& group, const std::string& name);
H5::Group open_group(const H5::Group& group, const std::string& name);

// A dataset whose size the file can really hold: its data lie in the file itself, and are not more
// than its stored bytes can unpack to.
class StoredColumn {
 public:
  StoredColumn(const H5::Group& group, const std::string& name);

  std::uint64_t rows() const { return rows_; }
  std::uint64_t elements() const { return elements_; }  // of one row
  const std::string& name() const { return name_; }     // for messages, path and all
  bool floating() const { return floating_; }

  // Rows [first, first + count) converted to `type`, appended to `out`. A fault when the elements
  // are no numbers, when floats would have to become integers, and when an integer does not fit.
  void read(std::uint64_t first, std::uint64_t count, DType type,
            std::vector<std::uint8_t>& out) const;
  std::vector<float> read_floats(std::uint64_t first, std::uint64_t count) const;
  // Not zero, one byte a row. Booleans, integers and floats all do.
  std::vector<std::uint8_t> read_flags() const;

 private:
  void read_as(std::uint64_t first, std::uint64_t count, const H5::DataType& type, void* to) const;

  H5::DataSet set_;
  std::string name_;
  std::vector<hsize_t> extents_;
  std::uint64_t rows_ = 0, elements_ = 1;
  bool floating_ = false;
};

}  // namespace troupe::replay::hdf5
