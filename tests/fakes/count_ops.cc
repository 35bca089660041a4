// Applies the op rules to signatures from standard input, one JSON object a line, so that tests in
// Python can check what an observer recorded:
//
//     {"name": "aten::mm", "arguments": [[1, 1, [2, 3], 0.0], [1, 1, [3, 4], 0.0]]}
//
// An argument is [kind, dtype, integers, real] in the numbers of `OpArgument`. Answers one JSON
// object a line; `--counted` lists the names that have a counting rule.

#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "flops/op_rules.h"

namespace {

using flopledger::OpArgument;
using nlohmann::json;

flopledger::OpSignature Read(const json& line) {
  flopledger::OpSignature signature;
  signature.name = line.at("name").get<std::string>();
  for (const json& entry : line.at("arguments")) {
    OpArgument argument;
    argument.kind = static_cast<OpArgument::Kind>(entry.at(0).get<int>());
    argument.dtype = static_cast<flopledger::DType>(entry.at(1).get<int>());
    argument.integers = entry.at(2).get<std::vector<std::int64_t>>();
    argument.real = entry.at(3).get<double>();
    signature.arguments.push_back(std::move(argument));
  }
  return signature;
}

json Write(const flopledger::OpCost& cost) {
  json excess = json::object();
  for (const auto& part : cost.excess) excess[part.cause] = part.flops.ToString();
  return {{"coverage", ToString(cost.coverage)},
          {"op_class", ToString(cost.op_class)},
          {"dtype", ToString(cost.dtype)},
          {"executed", cost.executed.ToString()},
          {"excess", excess},
          {"reason", ToString(cost.reason)}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--counted") == 0) {
    for (std::string_view name : flopledger::CountedOpNames()) std::cout << name << '\n';
    return 0;
  }
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      std::cout << Write(flopledger::CountOp(Read(json::parse(line)))).dump() << '\n';
    } catch (const json::exception& error) {
      std::cerr << "not a signature: " << line << ": " << error.what() << '\n';
      return 2;
    }
  }
  return 0;
}
