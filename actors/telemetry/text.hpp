// Numbers, durations and curves as a terminal shows them. Pure functions over UTF-8 text in which
// every code point is one column wide.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/telemetry/protocol.hpp"

namespace troupe::actors::telemetry {

// "0:42", "12:05", "3:07:09"; "-" for NaN. Seconds.
std::string format_duration(double seconds);
// Four significant characters: "7.25", "63.8", "812", "31.2k", "1.50M"; "-" for NaN, "inf".
std::string format_number(double value);
// "43 %" of 0.43.
std::string format_share(double share);

std::size_t columns_of(std::string_view text);
// At most `columns`; cut text ends in '>'.
std::string clip(std::string_view text, std::size_t columns);
// Padded with spaces, or clipped, to exactly `columns`.
std::string pad(std::string_view text, std::size_t columns);

using Points = std::vector<std::pair<double, double>>;
// `rows` lines of `columns` cells, top line first, x and y scaled to the points' range; points that
// are not finite are left out. Braille dots (2 x 4 per cell) or, without `unicode`, asterisks.
std::vector<std::string> plot(const Points& points, std::size_t columns, std::size_t rows,
                              bool unicode);

// The run in one line of at most `columns`: elapsed and ETA, steps, returns, rates, SPI, policy
// lag, and what waits on what. What does not fit is left out from the end.
std::string progress_line(const RunStatus& status, std::int64_t actor_steps,
                          std::int64_t learner_updates, std::size_t columns);
// "environment actor on credit 43 %, learner on sample 5 %"; empty when nothing waits.
std::string describe_waits(const std::vector<Wait>& waits);

}  // namespace troupe::actors::telemetry
