"""Declared work against an independent count: each family is built small in PyTorch, its ops are
counted from their shapes, and forward and backward agree exactly with ``flopledger explain`` on the
same configuration. Eager attention computes the whole square, so the convention is ``full_mask``.
What the library's model computes beside or instead of what the family needs is named per family."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from op_counter import count_step  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BATCH, LENGTH, SOURCE = 2, 12, 7


def program() -> str:
    """The command line program: named, installed beside Python, or built in this tree."""
    beside = Path(sys.executable).parent / "flopledger"
    built = sorted(ROOT.glob("build/*/src/cli/flopledger"))
    for candidate in (os.environ.get("FLOPLEDGER_PROGRAM"), beside, *built):
        if candidate and os.access(candidate, os.X_OK) and Path(candidate).is_file():
            return str(candidate)
    found = shutil.which("flopledger")
    if not found:
        pytest.skip("the program flopledger is neither installed nor built")
    return found


def declared(config: dict, folder: Path, *arguments: str) -> dict:
    path = folder / "config.json"
    path.write_text(json.dumps(config, default=str), encoding="utf-8")
    command = [program(), "explain", "--json", "--config", str(path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@dataclass
class Family:
    """A small model of one family."""

    model_type: str
    head: str = "ForCausalLM"
    shape: dict = field(default_factory=dict)
    convention: str = "full_mask"


COMMON = {
    "num_hidden_layers": 3,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 56,
    "vocab_size": 90,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
LATENT = {
    "num_key_value_heads": 4,
    "q_lora_rank": 12,
    "kv_lora_rank": 10,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}

FAMILIES = [
    Family("gpt2", shape={"n_layer": 3, "n_embd": 32, "n_head": 4, "n_positions": 64}),
    Family("gpt_neox"),
    Family("opt", shape={"ffn_dim": 56, "word_embed_proj_dim": 20}),
    Family("llama"),
    Family("llama", shape={"head_dim": 12, "tie_word_embeddings": True}),
    Family("mistral", shape={"sliding_window": 4}),
    Family("qwen2"),
    Family("qwen3", shape={"head_dim": 10}),
    Family("gemma", shape={"head_dim": 10}),
    Family("gemma2", shape={"head_dim": 10, "sliding_window": 4}),
    Family("gemma3_text", shape={"head_dim": 10, "sliding_window": 4, "num_hidden_layers": 6}),
    Family("phi3"),
    Family("falcon", shape={"new_decoder_architecture": True, "num_kv_heads": 2}),
    Family("falcon", shape={"multi_query": True, "new_decoder_architecture": False}),
    Family("mixtral", shape={"num_local_experts": 4, "num_experts_per_tok": 2}),
    Family("qwen2_moe", shape={**EXPERTS, "shared_expert_intermediate_size": 40}),
    Family("qwen3_moe", shape={**EXPERTS, "head_dim": 10}),
    Family("deepseek_v2", shape=LATENT),
    # Published configurations name a prediction module that the library's model leaves out.
    Family("deepseek_v3", shape=LATENT, convention="full_mask,multi_token_prediction=out"),
    Family(
        "gpt_oss",
        shape={
            "head_dim": 10,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "sliding_window": 4,
        },
    ),
    Family("bert", head="ForMaskedLM"),
    Family("bert", head="ForSequenceClassification", shape={"num_labels": 5}),
]


def names(families: list[Family]) -> list[str]:
    return [f"{i}-{family.model_type}{family.head}" for i, family in enumerate(families)]


def build(family: Family):
    """The model, every parameter trained, and its configuration as a file would have it."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(family.model_type, **{**COMMON, **family.shape})
    config._attn_implementation = "eager"
    if hasattr(config, "_experts_implementation"):
        config._experts_implementation = "eager"
    maker = (
        getattr(transformers, f"AutoModel{family.head}", None)
        or {
            "ForConditionalGeneration": transformers.AutoModelForSeq2SeqLM,
        }[family.head]
    )
    model = maker.from_config(config).float().train()
    described = config.to_dict() | {"architectures": [type(model).__name__]}
    return model, described


def assert_agrees(work: dict, ahead, back) -> None:
    assert int(work["forward_flops"]) == ahead.flops, ahead.kinds
    assert int(work["backward_flops"]) == back.flops, back.kinds


@pytest.mark.parametrize("family", FAMILIES, ids=names(FAMILIES))
def test_declared_work_is_what_the_ops_do(family: Family, tmp_path: Path) -> None:
    model, config = build(family)
    tokens = torch.randint(3, 90, (BATCH, LENGTH))
    ahead, back = count_step(model, lambda m: m(input_ids=tokens, use_cache=False).logits)
    work = declared(
        config,
        tmp_path,
        *("--batch", str(BATCH), "--seq", str(LENGTH), "--convention", family.convention),
    )
    assert_agrees(work, ahead, back)


@pytest.mark.parametrize("gated", [False, True])
def test_encoder_decoder(gated: bool, tmp_path: Path) -> None:
    family = Family(
        "t5",
        head="ForConditionalGeneration",
        shape={
            "d_model": 32,
            "d_kv": 6,
            "d_ff": 56,
            "num_layers": 2,
            "num_decoder_layers": 3,
            "num_heads": 4,
            "feed_forward_proj": "gated-gelu" if gated else "relu",
            "decoder_start_token_id": 0,
        },
    )
    model, config = build(family)
    source = torch.randint(3, 90, (BATCH, SOURCE))
    target = torch.randint(3, 90, (BATCH, LENGTH))
    ahead, back = count_step(
        model, lambda m: m(input_ids=source, decoder_input_ids=target, use_cache=False).logits
    )
    work = declared(
        config,
        tmp_path,
        *("--batch", str(BATCH), "--seq", str(LENGTH), "--source-seq", str(SOURCE)),
        *("--convention", "full_mask"),
    )
    assert_agrees(work, ahead, back)


def test_vision_transformer(tmp_path: Path) -> None:
    family = Family(
        "vit",
        head="ForImageClassification",
        shape={"image_size": 16, "patch_size": 4, "num_labels": 5},
    )
    model, config = build(family)
    images = torch.randn(BATCH, 3, 16, 16)
    ahead, back = count_step(model, lambda m: m(pixel_values=images).logits)
    # The images need no gradient: the patch projection has a weight gradient alone.
    work = declared(config, tmp_path, "--samples", str(BATCH), "--convention", "full_mask")
    assert_agrees(work, ahead, back)


def test_parameters_are_those_of_the_model(tmp_path: Path) -> None:
    for family in FAMILIES:
        if family.model_type not in ("gpt2", "llama", "qwen2", "qwen3", "mixtral", "opt"):
            continue
        model, config = build(family)
        work = declared(config, tmp_path, "--seq", "1")
        count = sum(parameter.numel() for parameter in model.parameters())
        assert int(work["parameters"]) == count, family.model_type
