// `troupe bench replay`; part of bench.cpp's verb. Main thread only.
#pragma once

#include <CLI/CLI.hpp>

namespace troupe::actors::cli {

void add_bench_replay(CLI::App& bench, int& exit_code);

}  // namespace troupe::actors::cli
