#!/usr/bin/env bash
# Installs what the demo needs, builds flopledger, and trains a small GPT with its books kept.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
usage: scripts/demo.sh [--seconds N] [--steps N] [--keep-serving] [TRAINING ARGUMENT...] [--help]

Installs what the demo needs (system packages through apt, Python packages into .venv/), builds and
installs flopledger there, and trains a small GPT on the CPU with MFU, HFU and coverage live: a log
line every few steps, /metrics for Prometheus and /live for the eye. Their addresses come first.
It ends by itself after about a minute, with the summary and the path of the step log.

  --seconds N      train for N seconds (default 60)
  --steps N        train for N steps instead
  --keep-serving   go on serving the pages after the training, until Ctrl-C

Any other argument goes to docs/examples/train_gpt.py as it is.

examples:
  scripts/demo.sh
  scripts/demo.sh --seconds 600 --keep-serving
  scripts/demo.sh --steps 20

Environment: FLOPLEDGER_PYTHON (a Python 3.11 to 3.13), FLOPLEDGER_TORCH (default torch==2.13.0),
FLOPLEDGER_JOBS, and pip's own (PIP_INDEX_URL: an index of CPU builds saves gigabytes on x86-64).
Exit status: that of the training; 2 usage; 4 something is missing that the script cannot install.
TEXT
}

require_count() {
  [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || usage_error "$1 is '${2:-}'; accepted: a whole number above 0"
}

training=()
seconds=60
while (($#)); do
  case "$1" in
    --seconds)
      require_count "$@"
      seconds="$2"
      shift
      ;;
    --steps)
      require_count "$@"
      training+=(--steps "$2")
      shift
      ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) training+=("$1") ;;
  esac
  shift
done

start=$SECONDS
say "What the demo needs:"
# shellcheck disable=SC2119  # its arguments are further packages
install_build_tools
install_python torch "$TORCH" numpy
install_wheel
say "Ready after $((SECONDS - start)) s."
exec "$VENV/bin/python" "$REPOSITORY/docs/examples/train_gpt.py" --seconds "$seconds" \
  "${training[@]}"
