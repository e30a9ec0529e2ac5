// Hand-written scanners for the few scalar forms; std::from_chars and std::to_chars do the
// arithmetic.
#include "actors/config/scalars.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace troupe::actors {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool take_sign(std::string_view& text) {
  if (text.empty() || (text[0] != '-' && text[0] != '+')) return false;
  const bool negative = text[0] == '-';
  text.remove_prefix(1);
  return negative;
}

std::size_t take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto count = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(count);
  return count;
}

// Digits of `base` to a signed integer.
std::optional<CoreInteger> digits_to_integer(std::string_view digits, int base, bool negative) {
  std::uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (digits.empty() || end != digits.data() + digits.size()) return std::nullopt;
  const std::uint64_t limit =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) + (negative ? 1 : 0);
  if (error == std::errc::result_out_of_range || magnitude > limit) return CoreInteger{0, false};
  return CoreInteger{static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude), true};
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool is_core_float(std::string_view text) {
  take_sign(text);
  const std::size_t whole = take_digits(text);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    if (take_digits(text) == 0 && whole == 0) return false;
  } else if (whole == 0) {
    return false;
  }
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    take_sign(text);
    if (take_digits(text) == 0) return false;
  }
  return text.empty();
}

}  // namespace

std::optional<bool> core_boolean(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

std::optional<CoreInteger> core_integer(std::string_view text) {
  if (text.starts_with("0x")) return digits_to_integer(text.substr(2), 16, false);
  if (text.starts_with("0o")) return digits_to_integer(text.substr(2), 8, false);
  const bool negative = take_sign(text);
  if (text.empty() || !is_digit(text[0])) return std::nullopt;
  return digits_to_integer(text, 10, negative);
}

std::optional<double> core_number(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0o")) {
    const auto integer = core_integer(text);
    if (!integer) return std::nullopt;
    return integer->in_range ? static_cast<double>(integer->value)
                             : std::numeric_limits<double>::infinity();
  }
  if (is_core_float(text)) {
    const bool negative = take_sign(text);
    double value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    // from_chars leaves the value alone when it is too large or too small; strtod's limits tell
    // which.
    if (result.ec == std::errc::result_out_of_range) {
      value = std::strtod(std::string(text).c_str(), nullptr);
    }
    return negative ? -value : value;
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const bool negative = take_sign(text);
  if (text == ".inf" || text == ".Inf" || text == ".INF") {
    const double infinity = std::numeric_limits<double>::infinity();
    return negative ? -infinity : infinity;
  }
  return std::nullopt;
}

std::optional<Duration> duration_from(std::string_view text) {
  std::string_view rest = text;
  const std::size_t whole = take_digits(rest);
  if (whole == 0) return std::nullopt;
  if (rest.starts_with(".")) {
    rest.remove_prefix(1);
    if (take_digits(rest) == 0) return std::nullopt;
  }
  const std::string_view number = text.substr(0, text.size() - rest.size());
  double factor = 0;
  if (rest == "ms") factor = 1;
  if (rest == "s") factor = 1000;
  if (rest == "m") factor = 60000;
  if (rest == "h") factor = 3600000;
  const auto value = core_number(number);
  if (factor == 0 || !value) return std::nullopt;
  const double milliseconds = *value * factor;
  const double rounded = std::round(milliseconds);
  // 0.1s is 100.00000000000001 ms in binary, so a tiny remainder is no fraction.
  if (!(milliseconds <= 9e15) || std::abs(milliseconds - rounded) > 1e-9 * (1 + rounded)) {
    return std::nullopt;
  }
  return Duration(static_cast<std::int64_t>(rounded));
}

std::string text_of(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value < 0 ? "-.inf" : ".inf";
  std::array<char, 40> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), result.ptr);
  // 1e-04 and 1e+12 as people write them.
  const std::size_t exponent = text.find('e');
  if (exponent == std::string::npos) return text;
  std::size_t digits = exponent + 1;
  if (text[digits] == '+') text.erase(digits, 1);
  if (text[digits] == '-') ++digits;
  if (text[digits] == '0') text.erase(digits, 1);
  return text;
}

std::string text_of(Duration value) {
  const std::int64_t milliseconds = value.count();
  if (milliseconds != 0 && milliseconds % 3600000 == 0) {
    return std::to_string(milliseconds / 3600000) + "h";
  }
  // One minute and a half reads better in seconds, five minutes in minutes.
  if (milliseconds != 0 && milliseconds % 60000 == 0) {
    return std::to_string(milliseconds / 60000) + "m";
  }
  if (milliseconds % 1000 == 0) return std::to_string(milliseconds / 1000) + "s";
  return std::to_string(milliseconds) + "ms";
}

}  // namespace troupe::actors
