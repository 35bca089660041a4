#!/usr/bin/env bash
# Builds the release preset and runs the benchmarks.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
usage: scripts/bench.sh [--filter PATTERN] [--json FILE] [--repetitions N] [--help]

Builds preset `release` and runs every benchmark of tests/bench. Prints one line a benchmark: the
median over the repetitions and how far they vary.

  --filter PATTERN   run the benchmarks whose name matches alone (a regular expression)
  --json FILE        write all results into FILE, in Google Benchmark's JSON format
  --repetitions N    how often each is measured (default 5)

examples:
  scripts/bench.sh
  scripts/bench.sh --filter StepBoundary --repetitions 20
  scripts/bench.sh --json before.json      then compare with Google Benchmark's compare.py

Figures of a machine that does other work at the same time mean nothing: close it first.
Exit status: 0; 1 a benchmark failed, or none matched; 2 usage; 4 something is missing.
TEXT
}

filter="."
json=""
repetitions=5
while (($#)); do
  case "$1" in
    --filter | --json | --repetitions)
      [[ -n "${2:-}" ]] || usage_error "$1 needs a value"
      case "$1" in
        --filter) filter="$2" ;;
        --json) json="$2" ;;
        --repetitions)
          [[ "$2" =~ ^[1-9][0-9]*$ ]] ||
            usage_error "--repetitions is '$2'; accepted: a whole number above 0"
          repetitions="$2"
          ;;
      esac
      shift
      ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) usage_error "unknown argument '$1'; accepted: --filter, --json, --repetitions, --help" ;;
  esac
  shift
done
# Relative to where the caller stands, not to the repository.
[[ -z "$json" || "$json" == /* ]] || json="$PWD/$json"

cd -- "$REPOSITORY"
say "What the benchmarks need:"
install_build_tools libbenchmark-dev
install_cuda_headers
logged "configure release" cmake --preset release
logged "build release" cmake --build --preset release

results="$REPOSITORY/build/bench-results"
rm -rf -- "$results"
mkdir -p "$results"
say "Benchmarks:"
status=0
for program in build/release/tests/bench/*_bench; do
  [[ -x "$program" ]] || continue
  name="$(basename -- "$program")"
  logged "$name" "$program" --benchmark_filter="$filter" --benchmark_repetitions="$repetitions" \
    --benchmark_enable_random_interleaving=true --benchmark_out_format=json \
    --benchmark_out="$results/$name.json" || status=1
done
"$VENV/bin/python" scripts/merge_benchmarks.py "$results" "${json:-$results/all.json}" || status=1
exit "$status"
