"""Settings of a run: argument > FLOPLEDGER_* > flopledger.toml > default."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    tomllib = None

# Name, type, default. A file or a variable may set each of them; FLOPLEDGER_<NAME> is the variable.
SETTINGS: dict[str, tuple[type, Any]] = {
    "run": (str, ""),
    "dtype": (str, ""),
    "seq_len": (int, 0),
    "warmup_steps": (int, 1),
    "window_steps": (int, 20),
    "log_every": (int, 10),
    "log_level": (str, "info"),
    "jsonl": (str, ""),
    "capture": (str, ""),
    "capture_max_bytes": (int, 1 << 30),
    "http": (bool, True),
    "address": (str, "127.0.0.1"),
    "port": (int, 9410),
    "allow_remote": (bool, False),
    "discovery": (str, ""),
    "observer": (str, "auto"),
    "strict": (bool, False),
    "device_records": (str, "auto"),
    "nvtx": (bool, True),
    "nvtx_steps": (str, ""),
    "nvtx_phases": (str, ""),
}
# Variables of the family that are read elsewhere.
_OTHER_VARIABLES = {
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "RUN_ID", "CACHE_DIR"),
    *("AUTOSTART", "PEAK", "MODEL_FLOPS"),  # of a program that calls no start()
}
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


def is_off(text: str) -> bool:
    """Whether a variable says no."""
    return text.lower() in _FALSE


def _nearest(name: str, accepted: list[str]) -> str:
    close = difflib.get_close_matches(name, accepted, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; accepted: {', '.join(accepted)}"


def _convert(name: str, value: Any, origin: str) -> Any:
    kind = SETTINGS[name][0]
    if kind is bool and isinstance(value, str):
        if value.lower() in _TRUE:
            return True
        if value.lower() in _FALSE:
            return False
        raise ValueError(f"{origin} is {value!r}; accepted: 1 or 0, true or false")
    if kind is int and isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise ValueError(f"{origin} is {value!r}; accepted: an integer") from None
    if kind is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{origin} is {value!r}; accepted: {kind.__name__}")
    return value


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for variable, text in environment.items():
        if not variable.startswith("FLOPLEDGER_") or text == "":
            continue
        name = variable.removeprefix("FLOPLEDGER_")
        if name in _OTHER_VARIABLES:
            continue
        if name.lower() not in SETTINGS:
            accepted = sorted(f"FLOPLEDGER_{key.upper()}" for key in SETTINGS)
            raise ValueError(f"unknown variable {variable}{_nearest(variable, accepted)}")
        found[name.lower()] = _convert(name.lower(), text, variable)
    return found


def _from_file(path: Path) -> dict[str, Any]:
    if tomllib is None or not path.is_file():
        return {}
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    for name in content:
        if name not in SETTINGS:
            raise ValueError(f"{path}: unknown key {name!r}{_nearest(name, sorted(SETTINGS))}")
    return {name: _convert(name, value, f"{path}: {name}") for name, value in content.items()}


def settings(
    arguments: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Every setting with its value.

    Raises ``ValueError`` that names the setting, where it came from and what is accepted; an
    unknown name is answered with the nearest known one.
    """
    unknown = sorted(set(arguments) - set(SETTINGS))
    if unknown:
        raise TypeError(f"unknown argument {unknown[0]!r}{_nearest(unknown[0], sorted(SETTINGS))}")
    result = {name: default for name, (_, default) in SETTINGS.items()}
    result.update(_from_file((folder or Path.cwd()) / "flopledger.toml"))
    result.update(_from_environment(os.environ if environment is None else environment))
    result.update(
        {
            name: _convert(name, value, name)
            for name, value in arguments.items()
            if value is not None
        }
    )
    return result
