#include "collect/trace/kineto_decoder.h"

#include <algorithm>
#include <array>

#include "collect/trace/op_arguments.h"
#include "collect/trace/range_names.h"
#include "collect/trace/time_text.h"

namespace flopledger {
namespace {

constexpr std::uint64_t kExactInDouble = std::uint64_t{1} << 53;
constexpr std::size_t kMostNames = 1 << 18;

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return lower;
}

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// The backward engine at work: `autograd::engine::evaluate_function: MulBackward0`,
/// `CudnnConvolutionBackward`, `torch::autograd::AccumulateGrad`.
bool IsAutogradNode(std::string_view name) {
  if (StartsWith(name, "autograd::engine::") || StartsWith(name, "torch::autograd::")) return true;
  if (StartsWith(name, "aten::")) return false;  // kernels of gradients: `aten::mul_backward`
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  constexpr std::string_view kBackward = "Backward";
  return name.size() > kBackward.size() && name.substr(name.size() - kBackward.size()) == kBackward;
}

/// Ranges of the framework itself that old versions record among the ops.
bool IsAnnotationName(std::string_view name) {
  return StartsWith(name, "Optimizer.step#") || StartsWith(name, "Optimizer.zero_grad#") ||
         StartsWith(name, "enumerate(DataLoader)#") || StartsWith(name, "DistributedDataParallel.");
}

bool IsMultiplyAdd(std::string_view counter) {
  return counter.find("fma_pred_on") != counter.npos || counter.find("_tensor") != counter.npos;
}

}  // namespace

std::size_t KinetoDecoder::KernelKeyHash::operator()(const KernelKey& key) const {
  std::uint64_t hash = key.name;
  for (const std::uint32_t part : key.shape) hash = (hash ^ part) * 0x9e3779b97f4a7c15ULL;
  return static_cast<std::size_t>(hash ^ hash >> 32);
}

KinetoDecoder::Category KinetoDecoder::CategoryOf(std::string_view name) {
  const auto found = categories_.find(name);
  if (found != categories_.end()) return found->second;
  constexpr std::pair<std::string_view, Category> kCategories[] = {
      {"cpu_op", Category::kOp},
      {"operator", Category::kOp},
      {"user_annotation", Category::kAnnotation},
      {"kernel", Category::kKernel},
      {"gpu_memcpy", Category::kMemcpy},
      {"memcpy", Category::kMemcpy},
      {"gpu_memset", Category::kMemset},
      {"memset", Category::kMemset},
      {"runtime", Category::kCall},
      {"cuda_runtime", Category::kCall},
      {"driver", Category::kCall},
      {"cuda_driver", Category::kCall},
      {"hip_runtime", Category::kCall},
      {"hip_driver", Category::kCall},
      {"cuda_profiler_range", Category::kRange},
  };
  const std::string lower = Lower(name);
  Category category = Category::kOther;
  for (const auto& [known, value] : kCategories) {
    if (lower == known) category = value;
  }
  if (categories_.size() < 1024) categories_.emplace(name, category);
  return category;
}

KinetoDecoder::NameFacts& KinetoDecoder::Name(std::string_view name) {
  const auto found = names_.find(name);
  if (found != names_.end()) return found->second;
  // Without a limit, a file of nothing but names would fill the memory.
  if (names_.size() >= kMostNames) name = "(more names than can be kept)";
  NameFacts facts;
  facts.number = static_cast<std::uint32_t>(names_.size());
  facts.has_rule =
      std::binary_search(options_.counted_ops.begin(), options_.counted_ops.end(), name);
  facts.autograd_node = IsAutogradNode(name);
  facts.graph_launch = name.find("GraphLaunch") != name.npos;
  facts.step = options_.step_names.empty() ? name.substr(0, 12) == "ProfilerStep"
                                           : IsStepName(name, options_.step_names);
  facts.phase = PhaseOfRange(name).value_or(Phase::kOther);
  facts.is_annotation = facts.step || IsAnnotationName(name);
  return names_.emplace(name, facts).first->second;
}

std::string_view KinetoDecoder::Text(std::size_t token) {
  if (token == 0) return {};
  return tokens_->at(token) == '"' ? tokens_->content(token) : tokens_->token(token);
}

bool KinetoDecoder::ReadTime(std::size_t token, std::int64_t* ns) {
  if (tokens_->at(token) == '"') ++oddities_.string_numbers;
  const std::optional<std::int64_t> read = MicrosecondsToNs(Text(token));
  if (!read) return false;
  *ns = *read;
  return true;
}

bool KinetoDecoder::ReadTimes(const KinetoEvent& event, Times* times) {
  const std::size_t duration = event.at(KinetoField::kDur);
  std::int64_t end = 0;
  if (event.has(KinetoField::kTs) && ReadTime(event.at(KinetoField::kTs), &times->start_ns) &&
      (duration == 0 || ReadTime(duration, &times->duration_ns)) &&
      !__builtin_add_overflow(times->start_ns, times->duration_ns, &end)) {
    return true;
  }
  ++oddities_.unreadable;
  return false;
}

std::optional<std::uint64_t> KinetoDecoder::Id(std::size_t token) {
  if (token == 0) return std::nullopt;
  const std::optional<std::uint64_t> id = ParseId(Text(token));
  if (!id || (*id > kExactInDouble && Text(token).front() != '-')) ++oddities_.huge_ids;
  return id;
}

std::int64_t KinetoDecoder::IntegerOr(std::size_t token, std::int64_t otherwise) {
  if (token == 0) return otherwise;
  return ParseInteger(Text(token)).value_or(otherwise);
}

std::uint16_t KinetoDecoder::Thread(std::size_t token) {
  const std::string_view text = Text(token);
  const auto found = threads_.find(text);
  if (found != threads_.end()) return found->second;
  constexpr std::uint16_t kMostThreads = 0xffff;
  if (threads_.size() >= kMostThreads) {
    ++oddities_.threads_refused;
    return kMostThreads;
  }
  return threads_.emplace(text, static_cast<std::uint16_t>(threads_.size())).first->second;
}

SignatureId KinetoDecoder::OpSignatureOf(const KinetoEvent& event, std::string_view name) {
  const OpArgumentTokens at{.dims = event.at(KinetoField::kInputDims),
                            .types = event.at(KinetoField::kInputType),
                            .concrete = event.at(KinetoField::kConcreteInputs)};
  if (at.dims == 0) ++oddities_.ops_without_shapes;
  key_.assign(name);
  for (const std::size_t part : {at.dims, at.types, at.concrete}) {
    key_ += '\0';
    std::size_t end = part;
    if (part != 0 && tokens_->SkipValue(&end) == JsonTokens::Verdict::kOk) {
      key_ += tokens_->span(part, end);
    }
  }
  const auto found = calls_with_arguments_.find(key_);
  if (found != calls_with_arguments_.end()) return found->second;
  const SignatureId id =
      signatures_.Intern({.name = Unescaped(name), .arguments = ReadOpArguments(*tokens_, at)});
  if (calls_with_arguments_.size() < kMostNames) calls_with_arguments_.emplace(key_, id);
  return id;
}

void KinetoDecoder::AddOp(const KinetoEvent& event, Category category) {
  Times times;
  if (!ReadTimes(event, &times)) return;
  if (times.duration_ns < 0) {
    ++oddities_.negative_durations;
    return;
  }
  const std::int64_t end_ns = times.start_ns + times.duration_ns;
  const std::string_view name = Text(event.at(KinetoField::kName));
  NameFacts& facts = Name(name);
  if (facts.step) {
    records_.steps.push_back(
        {.start_ns = times.start_ns, .end_ns = end_ns, .name = Unescaped(name)});
    return;
  }
  const std::uint16_t thread = Thread(event.at(KinetoField::kTid));
  if (category == Category::kAnnotation || facts.is_annotation) {
    if (facts.phase == Phase::kOther) return;
    records_.annotations.push_back(
        {.start_ns = times.start_ns, .end_ns = end_ns, .thread = thread, .phase = facts.phase});
    return;
  }
  KinetoOp op{.start_ns = times.start_ns, .end_ns = end_ns, .thread = thread};
  op.has_rule = facts.has_rule;
  op.autograd_node = facts.autograd_node;
  op.grad_mode = event.has(KinetoField::kSequenceNumber) &&
                 IntegerOr(event.at(KinetoField::kForwardThread), 0) == 0;
  std::size_t order = event.at(KinetoField::kEventIndex);
  if (order == 0) order = event.at(KinetoField::kExternalId);
  op.order = static_cast<std::uint32_t>(Id(order).value_or(0));
  if (facts.has_rule) {
    op.signature = OpSignatureOf(event, name);
  } else {
    if (!facts.interned) {
      facts.signature = signatures_.Intern({.name = Unescaped(name), .arguments = {}});
      facts.interned = true;
    }
    op.signature = facts.signature;
  }
  records_.ops.push_back(op);
}

void KinetoDecoder::AddCall(const KinetoEvent& event) {
  if (!event.has(KinetoField::kCorrelation)) return;
  Times times;
  if (!ReadTimes(event, &times)) return;
  const std::optional<std::uint64_t> correlation = Id(event.at(KinetoField::kCorrelation));
  if (!correlation) return;
  records_.calls.push_back({.correlation = *correlation,
                            .start_ns = times.start_ns,
                            .thread = Thread(event.at(KinetoField::kTid)),
                            .graph = Name(Text(event.at(KinetoField::kName))).graph_launch});
}

void KinetoDecoder::Extents(std::size_t token, std::uint32_t* to) {
  if (token == 0 || tokens_->at(token) != '[') return;
  for (std::size_t n = 0, i = token + 1; n < 3 && tokens_->at(i) != ']'; ++n) {
    const std::int64_t extent = IntegerOr(i, 0);
    if (extent > 0 && extent <= UINT32_MAX) to[n] = static_cast<std::uint32_t>(extent);
    if (tokens_->at(i + 1) != ',') return;
    i += 2;
  }
}

KernelId KinetoDecoder::KernelOf(const KinetoEvent& event, const NameFacts& facts,
                                 std::string_view name) {
  KernelKey key{.name = facts.number};
  Extents(event.at(KinetoField::kGrid), key.shape.data());
  Extents(event.at(KinetoField::kBlock), key.shape.data() + 3);
  const std::int64_t shared = IntegerOr(event.at(KinetoField::kSharedMemory), 0);
  if (shared > 0 && shared <= UINT32_MAX) key.shape[6] = static_cast<std::uint32_t>(shared);
  const auto found = kernel_ids_.find(key);
  if (found != kernel_ids_.end()) return found->second;
  const auto& shape = key.shape;
  const KernelId id = kernels_.Intern({.name = Unescaped(name),
                                       .grid = {shape[0], shape[1], shape[2]},
                                       .block = {shape[3], shape[4], shape[5]},
                                       .shared_memory_bytes = shape[6]});
  if (kernel_ids_.size() < kMostNames) kernel_ids_.emplace(key, id);
  return id;
}

void KinetoDecoder::AddWork(const KinetoEvent& event, Category category) {
  Times times;
  if (!ReadTimes(event, &times)) return;
  KinetoWork work;
  work.record.start_ns = times.start_ns;
  work.record.end_ns = times.start_ns + times.duration_ns;
  if (times.duration_ns < 0) ++oddities_.negative_durations;
  const std::string_view name = Text(event.at(KinetoField::kName));
  work.record.kernel = KernelOf(event, Name(name), name);
  work.record.kind = category == Category::kKernel   ? KernelRecord::Kind::kKernel
                     : category == Category::kMemcpy ? KernelRecord::Kind::kMemcpy
                                                     : KernelRecord::Kind::kMemset;
  // A device event's process is the device, and its thread the stream.
  std::size_t device = event.at(KinetoField::kDevice);
  std::size_t stream = event.at(KinetoField::kStream);
  if (device == 0 || stream == 0 || !event.has(KinetoField::kCorrelation)) {
    ++oddities_.missing_fields;
  }
  if (device == 0) device = event.at(KinetoField::kPid);
  if (stream == 0) stream = event.at(KinetoField::kTid);
  work.record.device =
      static_cast<std::uint16_t>(std::clamp<std::int64_t>(IntegerOr(device, 0), 0, 0xffff));
  work.record.stream = static_cast<std::uint32_t>(IntegerOr(stream, 0));
  if (const auto correlation = Id(event.at(KinetoField::kCorrelation))) {
    work.correlation = *correlation;
    work.has_correlation = true;
  }
  records_.work.push_back(work);
}

void KinetoDecoder::AddRange(const KinetoEvent& event) {
  std::size_t i = event.at(KinetoField::kArgs);
  if (i == 0 || tokens_->at(++i) == '}') return;
  bool multiply_adds = false;
  for (bool more = true; more;) {
    std::string_view key;
    if (tokens_->TakeKey(&i, &key) != JsonTokens::Verdict::kOk) return;
    if (const auto value = ParseInteger(Text(i)); value && key.find("__") != key.npos) {
      TraceCounter& counter = ranges_.counters[Unescaped(key)];
      counter.sum += *value;
      ++counter.ranges;
      multiply_adds = multiply_adds || (*value > 0 && IsMultiplyAdd(key));
    }
    if (tokens_->SkipValue(&i) != JsonTokens::Verdict::kOk ||
        tokens_->TakeSeparator(&i, '}', &more) != JsonTokens::Verdict::kOk) {
      return;
    }
  }
  if (multiply_adds || !options_.classify_kernel) return;
  const OpClass kind = options_.classify_kernel(Text(event.at(KinetoField::kName)));
  if (kind == OpClass::kMatmul || kind == OpClass::kConvolution || kind == OpClass::kAttention) {
    ++ranges_.uncounted_matmuls;
  }
}

void KinetoDecoder::OnEvent(JsonTokens& tokens, const KinetoEvent& event) {
  tokens_ = &tokens;
  const std::string_view kind = tokens.token(event.at(KinetoField::kPh));
  if (kind != "\"X\"" || !event.has(KinetoField::kCat)) return;
  const Category category = CategoryOf(tokens.content(event.at(KinetoField::kCat)));
  switch (category) {
    case Category::kOther:
      return;
    case Category::kOp:
    case Category::kAnnotation:
      AddOp(event, category);
      return;
    case Category::kCall:
      AddCall(event);
      return;
    case Category::kKernel:
    case Category::kMemcpy:
    case Category::kMemset:
      AddWork(event, category);
      return;
    case Category::kRange:
      AddRange(event);
      return;
  }
}

}  // namespace flopledger
