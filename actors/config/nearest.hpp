// "Did you mean": the nearest of a list of names. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

// Insertions, deletions, replacements and swaps of neighbours that turn one name into the other
// (Damerau-Levenshtein, optimal string alignment), case ignored. Cost: product of the lengths.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest distance; empty when none is near enough to be a slip of the
// fingers (at most a third of the name's letters, and at least one, may differ) or has it as its
// beginning.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace troupe::actors
