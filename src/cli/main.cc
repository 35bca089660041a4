#include "commands.h"

int main(int argc, char** argv) { return flopledger::cli::RunProgram(argc, argv); }
