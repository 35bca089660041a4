#include <string>
#include <string_view>
#include <vector>

#include "findings.h"
#include "transformer_terms.h"

namespace flopledger::flops {
namespace {

constexpr std::size_t kMostRuns = 1 << 21;

struct UsedParts {
  bool attention = false;
  bool dense = false;
  bool dense_width = false;  ///< some dense run leaves its width to the description
  bool experts = false;
  bool mamba2 = false;
  bool gated_delta = false;
  bool top_k = false;
};

UsedParts FindUsedParts(const TransformerDescription& d) {
  UsedParts used;
  if (d.runs.empty()) {
    used.attention = true;
    used.experts = d.experts.has_value();
    used.dense = used.dense_width = !used.experts;
  }
  for (const LayerRun& run : d.runs) {
    used.attention = used.attention || run.mixer == MixerKind::kAttention;
    used.mamba2 = used.mamba2 || run.mixer == MixerKind::kMamba2;
    used.gated_delta = used.gated_delta || run.mixer == MixerKind::kGatedDelta;
    used.experts = used.experts || run.feed_forward == FfnKind::kExperts;
    used.top_k = used.top_k || run.span == AttentionSpan::kTopK;
    if (run.feed_forward == FfnKind::kDense) {
      used.dense = true;
      used.dense_width = used.dense_width || run.ffn == 0;
    }
  }
  return used;
}

void CheckRuns(const TransformerDescription& d, Findings* findings) {
  if (d.runs.empty()) return;
  if (d.runs.size() > kMostRuns) {
    findings->Wrong("runs has " + std::to_string(d.runs.size()) + " entries (at most 2^21)");
    return;
  }
  Int128 total = 0;
  for (std::size_t i = 0; i < d.runs.size(); ++i) {
    const LayerRun& run = d.runs[i];
    const std::string name = "runs[" + std::to_string(i) + "].";
    if (run.count <= 0) {
      findings->Wrong(name + "count is " + std::to_string(run.count) + " (accepted: 1 and more)");
      return;
    }
    findings->Range(name + "ffn", run.ffn);
    findings->Range(name + "span_size", run.span_size);
    if (run.span != AttentionSpan::kWhole && run.span_size < 1) {
      findings->Wrong(name + "span_size is " + std::to_string(run.span_size) +
                      " (a window, chunk or top-k needs 1 or more)");
    }
    if (run.span == AttentionSpan::kWindow && !d.causal && run.span_size % 2 == 0) {
      findings->Wrong(name + "span_size is " + std::to_string(run.span_size) +
                      " (a window that looks both ways has the query in its middle: odd)");
    }
    total += run.count;
  }
  if (total != d.layers) {
    findings->Wrong("runs add up to " + ToString(total) + " layers, layers is " +
                    std::to_string(d.layers));
  }
}

void CheckAttention(const TransformerDescription& d, Findings* findings) {
  findings->Require("query_heads", d.query_heads);
  findings->Range("key_value_heads", d.key_value_heads);
  findings->Range("head_dim", d.head_dim);
  findings->Range("value_head_dim", d.value_head_dim);
  findings->Range("window", d.window);
  if (d.latent_attention.has_value()) {
    const LatentAttention& latent = *d.latent_attention;
    findings->Range("latent_attention.query_rank", latent.query_rank);
    findings->Require("latent_attention.key_value_rank", latent.key_value_rank);
    findings->Require("latent_attention.nope_head_dim", latent.nope_head_dim);
    findings->Range("latent_attention.rope_head_dim", latent.rope_head_dim);
    findings->Require("latent_attention.value_head_dim", latent.value_head_dim);
    return;
  }
  if (d.query_heads <= 0) return;
  if (d.head_dim == 0 && d.hidden % d.query_heads != 0) {
    findings->Wrong("head_dim is not given and hidden " + std::to_string(d.hidden) +
                    " is no multiple of query_heads " + std::to_string(d.query_heads));
  }
  if (d.key_value_heads > 0 && d.query_heads % d.key_value_heads != 0) {
    findings->Wrong("query_heads " + std::to_string(d.query_heads) +
                    " is no multiple of key_value_heads " + std::to_string(d.key_value_heads));
  }
  if (d.window > 0 && !d.causal && d.window % 2 == 0) {
    findings->Wrong("window is " + std::to_string(d.window) +
                    " (a window that looks both ways has the query in its middle: odd)");
  }
}

void CheckExperts(const TransformerDescription& d, bool used, Findings* findings) {
  if (!d.experts.has_value()) {
    if (used) findings->Require("experts", 0);
    return;
  }
  const ExpertShape& experts = *d.experts;
  findings->Require("experts.experts", experts.experts);
  findings->Require("experts.active", experts.active);
  findings->Require("experts.expert_ffn", experts.expert_ffn);
  findings->Range("experts.shared", experts.shared);
  findings->Range("experts.shared_ffn", experts.shared_ffn);
  findings->Range("experts.latent", experts.latent);
  findings->Range("experts.capacity_percent", experts.capacity_percent);
  if (experts.active > experts.experts) {
    findings->Wrong("experts.active " + std::to_string(experts.active) + " exceeds experts " +
                    std::to_string(experts.experts));
  }
}

void CheckRecurrent(const TransformerDescription& d, const UsedParts& used, Findings* findings) {
  if (used.mamba2) {
    const Mamba2Shape mamba = d.mamba2.value_or(Mamba2Shape{});
    findings->Require("mamba2.inner", mamba.inner);
    findings->Require("mamba2.state", mamba.state);
    findings->Require("mamba2.groups", mamba.groups);
    findings->Require("mamba2.heads", mamba.heads);
  }
  if (used.gated_delta) {
    const GatedDeltaShape delta = d.gated_delta.value_or(GatedDeltaShape{});
    findings->Require("gated_delta.key_heads", delta.key_heads);
    findings->Require("gated_delta.value_heads", delta.value_heads);
    findings->Require("gated_delta.key_head_dim", delta.key_head_dim);
    findings->Require("gated_delta.value_head_dim", delta.value_head_dim);
    findings->Range("gated_delta.convolution", delta.convolution);
  }
  if (used.top_k && d.indexer.has_value()) {
    findings->Require("indexer.heads", d.indexer->heads);
    findings->Require("indexer.head_dim", d.indexer->head_dim);
  }
}

}  // namespace

Result<void> Validate(const TransformerDescription& d) {
  Findings findings("transformer description");
  const UsedParts used = FindUsedParts(d);
  findings.Require("layers", d.layers);
  findings.Require("hidden", d.hidden);
  if (used.attention) CheckAttention(d, &findings);
  if (used.dense && used.dense_width) findings.Require("ffn", d.ffn);
  findings.Range("ffn", d.ffn);
  const bool other_head =
      !d.language_model_head || d.classes > 0 || d.poolers > 0 || d.head_transforms > 0;
  if (!other_head) findings.Require("vocabulary", d.vocabulary);
  findings.Range("vocabulary", d.vocabulary);
  findings.Range("embedding_width", d.embedding_width);
  findings.Range("classes", d.classes);
  for (auto [name, value] :
       {std::pair{"poolers", d.poolers}, std::pair{"head_transforms", d.head_transforms},
        std::pair{"prediction_modules", d.prediction_modules}}) {
    if (value < 0 || value > 1024) {
      findings.Wrong(std::string(name) + " is " + std::to_string(value) + " (accepted: 0 to 1024)");
    }
  }
  if (d.lora.has_value()) findings.Range("lora.rank", d.lora->rank);
  findings.Range("trainable.frozen_layers", d.trainable.frozen_layers);
  findings.Range("minor.positions", d.minor.positions);
  if (d.minor.other < 0) {
    findings.Wrong("minor.other is " + std::to_string(d.minor.other) + " (accepted: 0 and more)");
  }
  if (d.parameters < 0) {
    findings.Wrong("parameters is " + std::to_string(d.parameters) + " (accepted: 0 and more)");
  }
  CheckRuns(d, &findings);
  CheckExperts(d, used.experts, &findings);
  CheckRecurrent(d, used, &findings);
  return findings.Verdict();
}

}  // namespace flopledger::flops
