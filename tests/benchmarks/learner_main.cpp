// The learner's benchmark by itself, without the troupe program: prints the table, then the JSON
// object. Single-threaded driver.
#include <cstdio>

#include "learners/benchmark.hpp"

int main() {
  const auto report = troupe::learners::run_learner_benchmark({});
  if (!report) {
    std::fprintf(stderr, "%s\n", report.error().message.c_str());
    return 1;
  }
  std::printf("%s%s\n", report->text.c_str(), report->json.c_str());
  return 0;
}
