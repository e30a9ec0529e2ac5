// What is shown of an evaluation of a generator.
#include <algorithm>
#include <cstdio>

#include "actors/roles/generation_evaluation.hpp"
#include "learners/data/grid.hpp"

namespace troupe::actors {

namespace data = learners::data;

Result<std::vector<std::uint8_t>> sheet(std::span<const std::uint8_t> pixels,
                                        const learners::PictureSpec& spec, int columns) {
  const auto side = static_cast<int>(spec.side), channels = static_cast<int>(spec.channels);
  const auto bytes = static_cast<std::size_t>(side) * static_cast<std::size_t>(side * channels);
  std::vector<data::Image> pictures;
  for (std::size_t at = 0; at + bytes <= pixels.size(); at += bytes) {
    data::Image& picture = pictures.emplace_back(side, side, channels);
    std::copy_n(pixels.begin() + static_cast<std::ptrdiff_t>(at), bytes, picture.pixels.begin());
  }
  return data::grid(pictures, columns).and_then(data::encode_png);
}

std::string generation_line(const nlohmann::json& report) {
  std::string text;
  const auto add = [&](const char* format, double value) {
    char part[120];
    std::snprintf(part, sizeof part, format, value);
    text += part;
  };
  if (report.contains("frechet_distance")) {
    add("Frechet distance %.2f", report.at("frechet_distance").get<double>());
    if (report.contains("inception_score"))
      add(" and Inception score %.2f", report.at("inception_score").get<double>());
    text += " by " + report.at("features").get<std::string>() + ", ";
  }
  if (report.contains("agreement"))
    add("%.1f %% taken for their class, ", 100 * report.at("agreement").get<double>());
  if (report.contains("variance_share"))
    add("variance within classes %.2f of the real, ", report.at("variance_share").get<double>());
  if (report.value("collapsed", false)) text += "collapsed, ";
  return text + "samples/" + report.at("samples").get<std::string>();
}

}  // namespace troupe::actors
