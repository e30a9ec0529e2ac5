// What an evaluation of a classifier found, as JSON for messages and files and as text. Pure.
//
//   {"top1", "top5", "loss", "pictures", "corrupt", "classes": [names], "recall": [...],
//    "precision": [...], "confusion": [[actual, predicted, count], ...]}
// Shares from 0 to 1; `confusion` has the pairs that occur.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "learners/supervised/classification.hpp"

namespace troupe::actors {

nlohmann::ordered_json classification_json(const learners::Classification& counted,
                                           const std::vector<std::string>& classes,
                                           std::uint64_t corrupt);
// One line: "top-1 93.12 %, top-5 99.80 %, loss 0.201, 10000 pictures". Throws what nlohmann's at()
// does.
std::string classification_line(const nlohmann::json& report);
// A table of the classes, and the confusion matrix of up to 20 of them.
std::string classification_text(const nlohmann::json& report);

}  // namespace troupe::actors
