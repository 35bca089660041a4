#include "collect/trace/range_names.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace flopledger {
namespace {

constexpr std::size_t kMostShapes = 256;
constexpr std::size_t kMostDimensions = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
char LowerOf(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsLetter(char c) { return LowerOf(c) >= 'a' && LowerOf(c) <= 'z'; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerOf);
  return lower;
}

// Linear in the product of the lengths at the worst: the last star is the only one gone back to.
bool FitsPattern(std::string_view text, std::string_view pattern) {
  std::size_t t = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

constexpr std::array<std::string_view, 6> kStepWords = {"training_step", "train_step", "iteration",
                                                        "train step",    "step",       "iter"};

struct PhaseWord {
  std::string_view word;
  Phase phase;
};
constexpr std::array kPhaseWords = {
    PhaseWord{"forward", Phase::kForward},
    PhaseWord{"fwd", Phase::kForward},
    PhaseWord{"backward", Phase::kBackward},
    PhaseWord{"bwd", Phase::kBackward},
    PhaseWord{"recompute", Phase::kRecompute},
    PhaseWord{"recomputation", Phase::kRecompute},
    PhaseWord{"optimizer", Phase::kOptimizer},
    PhaseWord{"optimizer_step", Phase::kOptimizer},
    PhaseWord{"optimizer.step", Phase::kOptimizer},
    PhaseWord{"optimizer.zero_grad", Phase::kOptimizer},
    PhaseWord{"zero_grad", Phase::kOptimizer},
    PhaseWord{"communication", Phase::kCommunication},
    PhaseWord{"allreduce", Phase::kCommunication},
    PhaseWord{"all_reduce", Phase::kCommunication},
    PhaseWord{"data", Phase::kData},
    PhaseWord{"dataloader", Phase::kData},
    PhaseWord{"data_loading", Phase::kData},
    PhaseWord{"enumerate(dataloader)", Phase::kData},
    PhaseWord{"checkpoint", Phase::kCheckpoint},
    PhaseWord{"save_checkpoint", Phase::kCheckpoint},
    PhaseWord{"checkpoint_save", Phase::kCheckpoint},
    PhaseWord{"eval", Phase::kEval},
    PhaseWord{"evaluate", Phase::kEval},
    PhaseWord{"evaluation", Phase::kEval},
    PhaseWord{"validation", Phase::kEval},
};

// `AddmmBackward0`, `CheckpointFunctionBackward`, `torch::autograd::AccumulateGrad`.
bool IsBackwardNode(std::string_view name) {
  if (name.ends_with("AccumulateGrad")) return true;
  while (!name.empty() && IsDigit(name.back())) name.remove_suffix(1);
  return name.ends_with("Backward") && name.size() > 8;
}

class ShapeParser {
 public:
  explicit ShapeParser(std::string_view text) : text_(text) {}

  std::optional<std::vector<std::vector<std::int64_t>>> Shapes() {
    std::vector<std::vector<std::int64_t>> shapes;
    if (!Take('[')) return std::nullopt;
    while (!Take(']')) {
      if (shapes.size() == kMostShapes) return std::nullopt;
      if (!shapes.empty() && !Take(',')) return std::nullopt;
      std::optional<std::vector<std::int64_t>> shape = Shape();
      if (!shape) return std::nullopt;
      shapes.push_back(*std::move(shape));
    }
    return shapes;
  }

 private:
  bool Take(char c) {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::optional<std::vector<std::int64_t>> Shape() {
    std::vector<std::int64_t> shape;
    if (!Take('[')) return std::nullopt;
    while (!Take(']')) {
      if (shape.size() == kMostDimensions) return std::nullopt;
      if (!shape.empty() && !Take(',')) return std::nullopt;
      while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0) return std::nullopt;
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      shape.push_back(value);
    }
    return shape;
  }

  std::string_view text_;
};

}  // namespace

bool IsStepName(std::string_view name, const std::vector<std::string>& patterns) {
  if (!patterns.empty()) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [name](const std::string& pattern) { return FitsPattern(name, pattern); });
  }
  if (name.starts_with("ProfilerStep")) return true;
  const std::string lower = Lower(name);
  for (std::string_view word : kStepWords) {
    if (!lower.starts_with(word)) continue;
    const std::string_view rest = std::string_view(lower).substr(word.size());
    return std::none_of(rest.begin(), rest.end(), IsLetter);
  }
  return false;
}

std::optional<std::int64_t> NumberInName(std::string_view name) {
  std::size_t end = name.size();
  while (end > 0 && !IsDigit(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && IsDigit(name[begin - 1])) --begin;
  if (begin == end) return std::nullopt;
  std::int64_t number = 0;
  const auto [last, error] = std::from_chars(name.data() + begin, name.data() + end, number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::optional<Phase> PhaseOfRange(std::string_view name) {
  const std::string lower = Lower(name.substr(0, 64));
  std::string_view word = lower;
  word = word.substr(0, word.find_first_of(" #:[,"));
  for (const PhaseWord& known : kPhaseWords) {
    if (word == known.word) return known.phase;
  }
  return std::nullopt;
}

std::optional<OpRange> OpOfRange(std::string_view text) {
  constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";
  OpRange op;
  op.name = text.substr(0, text.find(", "));
  const bool numbered = text.find(", op_id = ") != std::string_view::npos;
  op.differentiable = text.find(", seq = ") != std::string_view::npos;
  if (op.name.starts_with(kEvaluate)) op.name.remove_prefix(kEvaluate.size());
  op.backward_node = IsBackwardNode(op.name);
  if (!numbered && !op.differentiable && !op.backward_node && !op.name.starts_with("aten::")) {
    return std::nullopt;
  }
  if (const std::size_t at = text.find(", sizes = "); at != std::string_view::npos) {
    std::string_view sizes = text.substr(at + 10);
    int depth = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == '[') ++depth;
      if (sizes[i] == ']' && --depth == 0) {
        op.sizes = sizes.substr(0, i + 1);
        break;
      }
    }
  }
  return op;
}

std::optional<std::vector<std::vector<std::int64_t>>> ShapesOfText(std::string_view text) {
  return ShapeParser(text).Shapes();
}

}  // namespace flopledger
