"""Declared model FLOPs, from what users have at hand."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ._core import ModelFlops, TransformerDescription

_FIELDS = (
    "layers",
    "hidden",
    "query_heads",
    "key_value_heads",
    "head_dim",
    "ffn",
    "gated_ffn",
    "vocabulary",
    "tied_embeddings",
    "causal",
    "window",
)


def transformer(**shape: Any) -> ModelFlops:
    """FLOPs of a decoder transformer by its shape.

    ``layers``, ``hidden``, ``query_heads``, ``ffn`` (width) and ``vocabulary`` are needed;
    ``key_value_heads`` (as many as query heads), ``head_dim`` (hidden / query_heads), ``gated_ffn``
    (False), ``tied_embeddings`` (False), ``causal`` (True) and ``window`` (tokens that a query
    sees, itself included; 0: all) have defaults.

    Raises ``TypeError`` for an unknown name, ``ValueError`` for what is missing or wrong.
    """
    unknown = sorted(set(shape) - set(_FIELDS))
    if unknown:
        raise TypeError(f"unknown: {', '.join(unknown)}; accepted: {', '.join(_FIELDS)}")
    description = TransformerDescription()
    for name, value in shape.items():
        setattr(description, name, value)
    return ModelFlops.from_transformer(description)


def from_hf(config: Any) -> ModelFlops:
    """FLOPs of a model by its Hugging Face configuration: an object of ``transformers``, a dict, or
    the path of a ``config.json``.

    Raises ``RuntimeError`` for an architecture that is not known, with those that are, and
    ``ValueError`` naming the missing or wrong fields. Nothing is guessed.
    """
    if isinstance(config, str | os.PathLike):
        with open(config, encoding="utf-8") as file:
            return ModelFlops.from_hf_config(file.read())
    if not isinstance(config, Mapping):
        to_dict = getattr(config, "to_dict", None)
        if to_dict is None:
            raise TypeError(
                f"config is a {type(config).__name__}; accepted: a transformers configuration, a "
                "dict, or the path of a config.json"
            )
        config = to_dict()
    return ModelFlops.from_hf_config(json.dumps(config, default=str))


def formula(text: str, **variables: int) -> ModelFlops:
    """FLOPs of a step by a formula in ``T`` (tokens), ``S`` (sequence length) and your own names.

        flopledger.formula("6*N*T + 12*L*H*Q*S*T", N=124_000_000, L=12, H=12, Q=64)

    Raises ``ValueError`` with the position of what is wrong.
    """
    return ModelFlops.from_formula(text, variables)
