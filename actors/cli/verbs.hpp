// The verbs of `troupe`, one file each. A function adds its verb to the program; the verb's
// callback leaves the exit code. A new verb is one file and one line in dispatch.cpp. Main thread
// only.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "envs/spec/result.hpp"

namespace troupe::actors::cli {

void add_run(CLI::App& program, int& exit_code);
void add_node(CLI::App& program, int& exit_code);
void add_check(CLI::App& program, int& exit_code);
void add_eval(CLI::App& program, int& exit_code);
void add_predict(CLI::App& program, int& exit_code);
void add_sample(CLI::App& program, int& exit_code);
void add_watch(CLI::App& program, int& exit_code);
void add_status(CLI::App& program, int& exit_code);
void add_scale(CLI::App& program, int& exit_code);
void add_drain(CLI::App& program, int& exit_code);
void add_stop(CLI::App& program, int& exit_code);
void add_bench(CLI::App& program, int& exit_code);
void add_deploy(CLI::App& program, int& exit_code);
void add_certificates(CLI::App& program, int& exit_code);
void add_replay(CLI::App& program, int& exit_code);
void add_help(CLI::App& program, int& exit_code);
void add_version(CLI::App& program, int& exit_code);

// Reads the command line, calls one verb and returns its exit code. Catches what verbs throw.
int dispatch(int argc, char** argv);

// "troupe: MESSAGE", each line of a message on its own, to stderr.
void print_error(const std::string& message);
// Prints the error; returns the exit code that stands for it.
int refuse(const Error& error);

// --set of run and check: may be given again and again, one value each.
CLI::Option* add_overrides(CLI::App& verb, std::vector<std::string>& overrides);

}  // namespace troupe::actors::cli
