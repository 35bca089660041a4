#include "nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace flopledger::flops {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (Lower(a[i - 1]) == Lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row.back();
}

}  // namespace

std::string_view Nearest(std::string_view word, std::span<const std::string_view> known) {
  // The distance of a very long word says nothing; its beginning does.
  const std::string_view start = word.substr(0, 256);
  std::string_view best;
  std::size_t best_distance = static_cast<std::size_t>(-1);
  for (std::string_view candidate : known) {
    const std::size_t distance = EditDistance(start, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace flopledger::flops
