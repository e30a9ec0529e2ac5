// The program. Everything it does is a verb.
#include "actors/cli/verbs.hpp"

int main(int argc, char** argv) { return troupe::actors::cli::dispatch(argc, argv); }
