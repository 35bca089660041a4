#include <cstdio>

#include "export/metric_catalogue.h"

int main() {
  const std::string text = flopledger::RenderMetricsDoc();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
