#!/usr/bin/env bash
# Proves on a CUDA machine what no other machine can prove, and writes the raw figures down.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: tests/gpu/check.sh [--wheel FILE] [--libraries FOLDER] [--python PROGRAM] [--out FOLDER]
                          [--part NAME]... [--small] [--device cuda|cpu] [--help]

One command of less than ten minutes for a machine with a CUDA GPU and PyTorch; no network. Builds
flopledger with CMake in build/gpu, or takes a wheel that was built elsewhere, then runs each part in
a process of its own, under a time limit:

  capabilities     what the collector found
  fence            kernels of uneven steps on two threads and streams, with and without waiting
  graphs           CUDA graphs: many kernels on one launch
  nvtx_steps       steps from torch.cuda.nvtx
  profiler_beside  torch.profiler in the same process
  coverage         a small transformer: what is counted, what is not, by name
  overhead         cost of a record, step time without and with collecting, in turns
  capture          a recording for `flopledger replay`, and what it says of it
  long_run         30 million records: stamps and memory

  --wheel FILE        install this wheel (for the Python of --python) instead of building
  --libraries FOLDER  shared libraries that the wheel needs and this machine lacks
  --python PROGRAM    the Python that has torch (default: python3)
  --out FOLDER        where the results go (default: build/gpu-results): results.json with all of
                      them, one JSON file a part, step logs and the output of each
  --part NAME         this part only; may be given more than once
  --small             a few steps of each: to see whether it works, not to measure
  --device cpu        the same on the CPU as a stand-in, for tests of the check itself

examples:
  tests/gpu/check.sh
  tests/gpu/check.sh --wheel flopledger-0.1.0-cp312-cp312-linux_x86_64.whl --out results
  tests/gpu/check.sh --part fence --part graphs

Exit status: 0 all parts passed (or were skipped with a reason, at least one passed); 1 a part
failed; 2 usage; 4 something is missing: torch, a compiler, a file; 77 skipped: no GPU here.
Settings of the GPU (clocks, persistence, MIG) are not touched.
TEXT
}

EXIT_USAGE=2
EXIT_MISSING=4
EXIT_SKIPPED=77

REPOSITORY="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)"
FOLDER="$REPOSITORY/tests/gpu"
TIME_LIMIT=570 # seconds, for everything

say() { printf '%s\n' "$*"; }
complain() { printf 'check.sh: %s\n' "$*" >&2; }
usage_error() {
  complain "$1 (see --help)"
  exit "$EXIT_USAGE"
}

wheel="" libraries="" python="python3" out="$REPOSITORY/build/gpu-results" device="cuda"
parts=() size=()
while (($#)); do
  case "$1" in
    --wheel | --libraries | --python | --out | --part | --device)
      [[ -n "${2:-}" ]] || usage_error "$1 needs a value"
      case "$1" in
        --wheel) wheel="$2" ;;
        --libraries) libraries="$2" ;;
        --python) python="$2" ;;
        --out) out="$2" ;;
        --part) parts+=("$2") ;;
        --device)
          [[ "$2" == cuda || "$2" == cpu ]] ||
            usage_error "--device is '$2'; accepted: cuda, cpu"
          device="$2"
          ;;
      esac
      shift
      ;;
    --small) size=(--small) ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) usage_error "unknown argument '$1'; accepted: --wheel, --libraries, --python, --out, --part, --small, --device, --help" ;;
  esac
  shift
done

if [[ -n "$wheel" && ! -f "$wheel" ]]; then
  complain "--wheel is '$wheel', which is no file"
  exit "$EXIT_MISSING"
fi
if [[ -n "$libraries" && ! -d "$libraries" ]]; then
  complain "--libraries is '$libraries', which is no folder"
  exit "$EXIT_MISSING"
fi
if ! command -v "$python" >/dev/null; then
  complain "--python is '$python', which is no program"
  exit "$EXIT_MISSING"
fi

# Asks in a process of its own: what torch does at its start is not this script's.
probe_gpu() {
  "$python" - <<'CODE'
import sys
try:
    import torch
except ImportError as error:
    print(f"torch cannot be imported: {error}")
    sys.exit(4)
if not torch.cuda.is_available():
    print(f"torch {torch.__version__} sees no CUDA device")
    sys.exit(77)
properties = torch.cuda.get_device_properties(0)
print(f"{properties.name}, torch {torch.__version__}, CUDA {torch.version.cuda}")
CODE
}

status=0
found="$(probe_gpu 2>&1)" || status=$?
if ((status == EXIT_SKIPPED)) && [[ "$device" == cuda ]]; then
  say "skipped: $found"
  exit "$EXIT_SKIPPED"
elif ((status != 0 && status != EXIT_SKIPPED)); then
  complain "$found"
  exit "$EXIT_MISSING"
fi
say "device: $found"

mkdir -p "$out"
out="$(cd -- "$out" && pwd)"
scratch="$(mktemp -d)"
trap 'rm -rf -- "$scratch"' EXIT
site="$scratch/site"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
[[ -z "$libraries" ]] || export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# Nothing of the caller's may steer the runs.
for name in $(compgen -e); do
  [[ "$name" != FLOPLEDGER_* || "$name" == FLOPLEDGER_CACHE_DIR ]] || unset "$name"
done
unset NVTX_INJECTION64_PATH

# logged NAME COMMAND...: with its output in a file, the end of which is shown if it fails.
logged() {
  local name="$1" start=$SECONDS result=0
  shift
  printf '  %-20s' "$name"
  "$@" >"$out/$name.log" 2>&1 </dev/null || result=$?
  if ((result == 0)); then
    printf '%s s\n' $((SECONDS - start))
  elif ((result == EXIT_SKIPPED)); then
    tail -n 1 "$out/$name.log"
  else
    printf 'FAILED after %s s (status %s)\n' $((SECONDS - start)) "$result"
    sed 's/^/    | /' <(tail -n 20 "$out/$name.log")
  fi
  return "$result"
}

say "flopledger:"
if [[ -n "$wheel" ]]; then
  logged wheel "$python" -m pip install --quiet --no-index --no-deps --no-compile \
    --target "$site" "$wheel" || exit "$EXIT_MISSING"
elif [[ "$device" == cpu ]] && "$python" -c 'import flopledger' 2>/dev/null; then
  site="" # the stand-in takes what is installed
else
  for program in cmake ninja c++; do
    if ! command -v "$program" >/dev/null; then
      complain "$program is not there: it is needed to build, or give --wheel"
      exit "$EXIT_MISSING"
    fi
  done
  logged build timeout 300 bash "$FOLDER/build.sh" "$python" "$site" || exit "$EXIT_MISSING"
fi
export PYTHONPATH="$FOLDER${site:+:$site}${PYTHONPATH:+:$PYTHONPATH}"
if ! found="$("$python" -c 'import flopledger; print(flopledger.__version__)' 2>&1)"; then
  complain "flopledger cannot be imported: $(tail -n 1 <<<"$found")"
  exit "$EXIT_MISSING"
fi

declare -A limits=()
order=()
while read -r name limit; do
  limits["$name"]="$limit"
  order+=("$name")
done < <("$python" -m gpu_check list)
for name in "${parts[@]}"; do
  [[ -n "${limits[$name]:-}" ]] ||
    usage_error "--part is '$name'; accepted: ${order[*]}"
done
((${#parts[@]})) || parts=("${order[@]}")
for name in results "${order[@]}"; do rm -f -- "$out/$name.json"; done

say "parts:"
for name in "${parts[@]}"; do
  status=0
  limit="${limits[$name]}"
  ((limit < TIME_LIMIT - SECONDS)) || limit=$((TIME_LIMIT - SECONDS))
  if ((limit <= 0)); then
    "$python" -m gpu_check note "$name" "no time was left of $TIME_LIMIT s" --out "$out"
    continue
  fi
  logged "$name" timeout --kill-after=10 "$limit" \
    "$python" -m gpu_check run "$name" --device "$device" --out "$out" "${size[@]}" || status=$?
  # Without a document of its own, the part was ended from outside.
  if [[ ! -f "$out/$name.json" ]]; then
    why="ended with status $status: see $name.log"
    ((status != 124 && status != 137)) || why="did not end within $limit s"
    "$python" -m gpu_check note "$name" "$why" --out "$out"
  fi
done

say "results in $out:"
"$python" -m gpu_check sum "$out"
