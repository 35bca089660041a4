// Properties of declared work that hold for every shape, checked on a few hundred random ones.
#include <gtest/gtest.h>

#include <random>

#include "flopledger/explain.h"
#include "flopledger/model_flops.h"

namespace flopledger {
namespace {

constexpr int kRounds = 300;

class FlopsProperty : public ::testing::Test {
 protected:
  std::int64_t Draw(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  TransformerDescription DrawTransformer() {
    TransformerDescription d;
    d.layers = Draw(1, 6);
    d.key_value_heads = Draw(1, 4);
    d.query_heads = d.key_value_heads * Draw(1, 4);
    d.head_dim = Draw(1, 16);
    d.hidden = Draw(1, 64);
    d.ffn = Draw(1, 96);
    d.gated_ffn = Draw(0, 1) == 1;
    d.vocabulary = Draw(1, 200);
    d.output_gate = Draw(0, 1) == 1;
    return d;
  }

  std::vector<SequenceGroup> DrawSequences() {
    std::vector<SequenceGroup> groups;
    for (std::int64_t i = Draw(1, 4); i > 0; --i) {
      groups.push_back({.length = Draw(0, 300), .count = Draw(1, 3)});
    }
    return groups;
  }

  static DeclaredWork Evaluate(const TransformerDescription& d, const Workload& workload,
                               const FlopConvention& convention = {}) {
    auto model = ModelFlops::FromTransformer(d);
    EXPECT_TRUE(model.has_value()) << model.error().message();
    auto work = model->Evaluate(workload, convention);
    EXPECT_TRUE(work.has_value()) << work.error().message();
    auto total = model->EvaluateTotal(workload, convention);
    EXPECT_EQ(total->forward, work->forward) << "the sum without parts is another one";
    EXPECT_EQ(total->backward, work->backward);
    return *work;
  }

  static std::string Total(const DeclaredWork& work) {
    return work.forward.ToString() + " + " + work.backward.ToString();
  }

  std::mt19937 random_{20240601};
};

TEST_F(FlopsProperty, APackIsTheSumOfItsDocuments) {
  for (int i = 0; i < kRounds; ++i) {
    TransformerDescription d = DrawTransformer();
    if (Draw(0, 2) == 0) d.window = Draw(1, 50);
    const std::vector<SequenceGroup> groups = DrawSequences();
    Flops forward;
    Flops backward;
    for (const SequenceGroup& group : groups) {
      const DeclaredWork one = Evaluate(d, {.sequences = {{.length = group.length, .count = 1}}});
      forward += one.forward * group.count;
      backward += one.backward * group.count;
    }
    const DeclaredWork pack = Evaluate(d, {.sequences = groups});
    EXPECT_EQ(pack.forward, forward);
    EXPECT_EQ(pack.backward, backward);
  }
}

// Each mask against a loop over its pairs.
TEST_F(FlopsProperty, PairsAreThoseOfALoop) {
  for (int i = 0; i < kRounds; ++i) {
    TransformerDescription d{.layers = 1, .hidden = 1, .query_heads = 1, .ffn = 1, .vocabulary = 1};
    const std::int64_t length = Draw(0, 40);
    const std::int64_t context = Draw(0, 40);
    const std::int64_t size = Draw(1, 50);
    const auto span = static_cast<AttentionSpan>(Draw(0, 3));
    std::int64_t prefix = 0;
    if (span == AttentionSpan::kWhole) prefix = Draw(0, length);
    d.runs = {{.count = 1, .span = span, .span_size = size}};
    std::int64_t pairs = 0;
    for (std::int64_t q = context; q < context + length; ++q) {
      for (std::int64_t k = 0; k < context + length; ++k) {
        bool seen = k <= q;
        if (span == AttentionSpan::kWindow) seen = seen && q - k < size;
        if (span == AttentionSpan::kChunk) seen = seen && q / size == k / size;
        if (q < context + prefix && k >= context && k < context + prefix) seen = true;
        if (seen) ++pairs;
      }
      // Top-k: as many of the visible keys as there are, at most k.
      if (span == AttentionSpan::kTopK) pairs -= std::max<std::int64_t>(q + 1 - size, 0);
    }
    const DeclaredWork work = Evaluate(
        d, {.sequences = {{.length = length, .count = 1, .context = context, .prefix = prefix}}});
    EXPECT_EQ(work.parts[1].name, "layers.attention.core");
    EXPECT_EQ(work.parts[1].forward.ToString(), std::to_string(4 * pairs))
        << "span " << static_cast<int>(span) << " size " << size << " length " << length
        << " context " << context << " prefix " << prefix;
  }
}

TEST_F(FlopsProperty, ACentredWindowIsThatOfALoop) {
  for (int i = 0; i < kRounds; ++i) {
    TransformerDescription d{.layers = 1,
                             .hidden = 1,
                             .query_heads = 1,
                             .ffn = 1,
                             .vocabulary = 1,
                             .causal = false,
                             .window = 2 * Draw(0, 30) + 1};
    const std::int64_t length = Draw(0, 50);
    std::int64_t pairs = 0;
    for (std::int64_t q = 0; q < length; ++q) {
      for (std::int64_t k = 0; k < length; ++k) pairs += std::abs(q - k) <= d.window / 2 ? 1 : 0;
    }
    const DeclaredWork work = Evaluate(d, {.sequences = {{.length = length, .count = 1}}});
    EXPECT_EQ(work.parts[1].forward.ToString(), std::to_string(4 * pairs));
  }
}

TEST_F(FlopsProperty, AWindowAsLongAsTheSequenceIsTheCausalMask) {
  for (int i = 0; i < kRounds; ++i) {
    TransformerDescription d = DrawTransformer();
    const Workload workload{.sequences = DrawSequences()};
    const DeclaredWork causal = Evaluate(d, workload);
    d.window = 300 + Draw(0, 100);
    EXPECT_EQ(Total(Evaluate(d, workload)), Total(causal));
    for (AttentionMask mask : {AttentionMask::kFull, AttentionMask::kCausalHalf}) {
      TransformerDescription whole = d;
      whole.window = 0;
      EXPECT_EQ(Total(Evaluate(d, workload, {.attention_mask = mask})),
                Total(Evaluate(whole, workload, {.attention_mask = mask})));
    }
  }
}

TEST_F(FlopsProperty, AsManyKeyHeadsAsQueryHeadsIsMultiHead) {
  for (int i = 0; i < kRounds; ++i) {
    TransformerDescription d = DrawTransformer();
    const Workload workload{.sequences = DrawSequences()};
    d.key_value_heads = d.query_heads;
    const DeclaredWork grouped = Evaluate(d, workload);
    d.key_value_heads = 0;
    EXPECT_EQ(Total(Evaluate(d, workload)), Total(grouped));
  }
}

TEST_F(FlopsProperty, OneExpertIsADenseFfnAndARouter) {
  for (int i = 0; i < kRounds; ++i) {
    TransformerDescription dense = DrawTransformer();
    const Workload workload{.sequences = DrawSequences()};
    TransformerDescription experts = dense;
    experts.experts = ExpertShape{.experts = 1, .active = 1, .expert_ffn = dense.ffn};
    const DeclaredWork with_router = Evaluate(experts, workload);
    std::int64_t tokens = 0;
    for (const SequenceGroup& group : workload.sequences) tokens += group.length * group.count;
    const Flops router = Flops::FromInteger(Int128{2} * tokens * dense.hidden * dense.layers);
    const DeclaredWork plain = Evaluate(dense, workload);
    EXPECT_EQ(with_router.forward, plain.forward + router);
    EXPECT_EQ(with_router.backward, plain.backward + router + router);
    EXPECT_EQ(Total(Evaluate(experts, workload, {.router = false})), Total(plain));
  }
}

TEST_F(FlopsProperty, RankZeroAdaptersOverAFrozenModelAreAFrozenModel) {
  for (int i = 0; i < kRounds; ++i) {
    TransformerDescription d = DrawTransformer();
    const Workload workload{.sequences = DrawSequences()};
    d.trainable = TrainableParts::None();
    const DeclaredWork frozen = Evaluate(d, workload);
    EXPECT_EQ(frozen.backward.ToString(), "0");
    d.lora = LoraShape{.rank = 0};
    EXPECT_EQ(Total(Evaluate(d, workload)), Total(frozen));
  }
}

// Each line of adapters by hand: in the lowest layer nothing needs a gradient below the adapters.
TEST_F(FlopsProperty, AdaptersCostTheirOwnSixAndTheFrozenWeightsInputGradients) {
  for (int i = 0; i < kRounds; ++i) {
    TransformerDescription d = DrawTransformer();
    d.output_gate = false;
    d.gated_ffn = true;
    d.trainable = TrainableParts::None();
    const std::int64_t rank = Draw(1, 8);
    d.lora = LoraShape{.rank = rank};
    const std::int64_t tokens = Draw(1, 50);
    const std::int64_t q = d.query_heads * d.head_dim;
    const std::int64_t kv = d.key_value_heads * d.head_dim;
    const Int128 layer = Int128{d.hidden} * (2 * q + 2 * kv) + Int128{3} * d.hidden * d.ffn;
    const Int128 adapters =
        Int128{rank} * (2 * (d.hidden + q) + 2 * (d.hidden + kv) + 3 * (d.hidden + d.ffn));
    const Int128 lowest = Int128{d.hidden} * (q + 2 * kv) + Int128{3} * rank * d.hidden;
    const Int128 pairs = Int128{tokens} * (tokens + 1) / 2;
    const Int128 core = 4 * pairs * d.query_heads * d.head_dim * d.layers;
    const Int128 head = Int128{2} * tokens * d.hidden * d.vocabulary;
    const DeclaredWork work = Evaluate(d, {.sequences = {{.length = tokens, .count = 1}}});
    EXPECT_EQ(work.forward.ToString(),
              ToString(2 * tokens * d.layers * (layer + adapters) + core + head));
    EXPECT_EQ(
        work.backward.ToString(),
        ToString(2 * tokens * (d.layers * (layer + 2 * adapters) - lowest) + 2 * core + head));
  }
}

TEST_F(FlopsProperty, AFrozenBottomHasNoBackward) {
  for (int i = 0; i < kRounds; ++i) {
    TransformerDescription d = DrawTransformer();
    const Workload workload{.sequences = DrawSequences()};
    const DeclaredWork all = Evaluate(d, workload);
    d.trainable.frozen_layers = Draw(1, d.layers);
    const DeclaredWork part = Evaluate(d, workload);
    EXPECT_EQ(part.forward, all.forward);
    EXPECT_LE(part.backward, all.backward);
    if (d.trainable.frozen_layers == d.layers) {
      // Only the last norm and the head train.
      EXPECT_EQ(part.backward, 2 * part.parts.back().forward);
    }
  }
}

TEST_F(FlopsProperty, ConventionsDifferOnlyByTheirSwitches) {
  for (int i = 0; i < kRounds / 10; ++i) {
    TransformerDescription d = DrawTransformer();
    d.head_dim = Draw(1, 8);
    d.hidden = d.query_heads * d.head_dim;
    auto model = ModelFlops::FromTransformer(d);
    const Workload workload{.sequences = DrawSequences()};
    for (const NamedConvention& known : KnownConventions()) {
      auto comparison = CompareConventions(*model, workload, {}, known.convention);
      ASSERT_TRUE(comparison.has_value()) << known.name;
      Flops sum = comparison->first_total;
      for (const SwitchDifference& s : comparison->switches) sum += s.change;
      EXPECT_EQ(sum, comparison->second_total) << known.name;
      auto direct = model->EvaluateTotal(workload, known.convention);
      EXPECT_EQ(sum, direct->forward + direct->backward) << known.name;
    }
  }
}

TEST_F(FlopsProperty, AMillionLayersAndATrillionTokensDoNotOverflow) {
  TransformerDescription d{.layers = 1'000'000,
                           .hidden = 16384,
                           .query_heads = 128,
                           .key_value_heads = 8,
                           .head_dim = 128,
                           .ffn = 53248,
                           .gated_ffn = true,
                           .vocabulary = 128256};
  constexpr std::int64_t kTokens = std::int64_t{1} << 40;
  const DeclaredWork one = Evaluate(d, {.sequences = {{.length = kTokens, .count = 1}}});
  // By hand: core 4 x pairs x 128 x 128 x layers.
  const Int128 pairs = Int128{kTokens} * (Int128{kTokens} + 1) / 2;
  EXPECT_EQ(one.parts[1].forward.ToString(), ToString(4 * pairs * 128 * 128 * 1'000'000));
  // 2^40 tokens in sequences of 8192.
  Evaluate(d, {.sequences = {{.length = 8192, .count = kTokens / 8192}}});
}

TEST_F(FlopsProperty, CapacitySlotsCountOnlyWherePaddingDoes) {
  TransformerDescription d = DrawTransformer();
  d.experts = ExpertShape{.experts = 8, .active = 2, .expert_ffn = 16, .capacity_percent = 125};
  const Workload workload{.sequences = {{.length = 100, .count = 1}}};
  const DeclaredWork useful = Evaluate(d, workload);
  const DeclaredWork computed = Evaluate(d, workload, {.tokens = CountedTokens::kComputed});
  // 200 visits; slots 8 x ceil(200 x 1.25 / 8) = 8 x 32 = 256.
  EXPECT_EQ((computed.forward - useful.forward).ToString(),
            ToString(Int128{56} * 2 * (d.gated_ffn ? 3 : 2) * d.hidden * 16 * d.layers));
}

}  // namespace
}  // namespace flopledger
