// A table as its first client or the configuration file declares it: name, columns and options,
// read strictly from JSON. Pure functions; any thread.
//
//   {"name": "transitions",
//    "observation": [{"name": "observation", "dtype": "f32", "shape": [17]}],
//    "step": [{"name": "action", "dtype": "f32", "shape": [6]}],
//    "options": {"capacity": 1000000, "n_step": 5}}
//
// Without observation and step it only asks for a table that exists.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "envs/spec/result.hpp"
#include "replay/table_types.hpp"

namespace troupe::actors {

struct TableRequest {
  std::string name;
  bool declares = false;  // it has columns
  replay::Signature signature;
  replay::TableOptions options;
};

// `max_row_bytes` bounds one step. kInvalidArgument names the key that is unknown, missing, of the
// wrong type or out of range. What the options mean is checked by Table::create.
Result<TableRequest> read_table_request(const nlohmann::json& request, std::uint64_t max_row_bytes);

// The options object of a request that would declare the same table.
nlohmann::json options_json(const replay::TableOptions& options);
nlohmann::json columns_json(const std::vector<Column>& columns);

// Bytes of one step in all columns, reward included.
std::uint64_t step_bytes(const replay::Signature& signature);

}  // namespace troupe::actors
