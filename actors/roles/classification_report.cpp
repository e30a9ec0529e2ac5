// Implements the forms of a classifier's evaluation.
#include "actors/roles/classification_report.hpp"

#include <algorithm>
#include <cstdio>

namespace troupe::actors {
namespace {

constexpr std::size_t kMostColumns = 20;  // of a confusion matrix as text

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

}  // namespace

nlohmann::ordered_json classification_json(const learners::Classification& counted,
                                           const std::vector<std::string>& classes,
                                           std::uint64_t corrupt) {
  nlohmann::ordered_json json{{"top1", counted.top1()},
                              {"top5", counted.top5()},
                              {"loss", counted.loss()},
                              {"pictures", counted.total()},
                              {"corrupt", corrupt},
                              {"classes", classes},
                              {"recall", nlohmann::json::array()},
                              {"precision", nlohmann::json::array()},
                              {"confusion", nlohmann::json::array()}};
  for (std::int64_t c = 0; c < counted.classes(); ++c) {
    json["recall"].push_back(counted.recall(c));
    json["precision"].push_back(counted.precision(c));
    for (std::int64_t predicted = 0; predicted < counted.classes(); ++predicted)
      if (const std::int64_t n = counted.confused(c, predicted); n > 0)
        json["confusion"].push_back({c, predicted, n});
  }
  return json;
}

std::string classification_line(const nlohmann::json& report) {
  std::string text =
      formatted("top-1 %.2f %%, top-5 %.2f %%, loss %.4f, %lld pictures",
                100 * report.at("top1").get<double>(), 100 * report.at("top5").get<double>(),
                report.at("loss").get<double>(),
                static_cast<long long>(report.at("pictures").get<std::int64_t>()));
  if (const auto corrupt = report.at("corrupt").get<std::uint64_t>(); corrupt > 0)
    text += ", " + std::to_string(corrupt) + " that cannot be decoded left out";
  return text;
}

std::string classification_text(const nlohmann::json& report) {
  const auto classes = report.at("classes").get<std::vector<std::string>>();
  std::size_t width = 5;
  for (const std::string& name : classes) width = std::max(width, name.size());
  std::string text = padded("class", width) + "  recall  precision\n";
  for (std::size_t c = 0; c < classes.size(); ++c)
    text += padded(classes[c], width) + formatted("  %5.1f %%  %5.1f %%\n",
                                                  100 * report.at("recall").at(c).get<double>(),
                                                  100 * report.at("precision").at(c).get<double>());
  if (classes.size() > kMostColumns) return text;
  std::vector<std::int64_t> counts(classes.size() * classes.size());
  for (const auto& entry : report.at("confusion"))
    counts[entry.at(0).get<std::size_t>() * classes.size() + entry.at(1).get<std::size_t>()] =
        entry.at(2).get<std::int64_t>();
  text += "\nconfusion: a row is a class, a column what it was taken for, in the same order\n";
  for (std::size_t row = 0; row < classes.size(); ++row) {
    text += padded(classes[row], width);
    for (std::size_t column = 0; column < classes.size(); ++column)
      text += formatted(" %5lld", static_cast<long long>(counts[row * classes.size() + column]));
    text += "\n";
  }
  return text;
}

}  // namespace troupe::actors
