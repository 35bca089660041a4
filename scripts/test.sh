#!/usr/bin/env bash
# Installs what the tests need and runs them all.
# shellcheck disable=SC2317  # functions are called through phase and logged
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--quick] [--filter PATTERN] [--help]

Installs what the tests need (system packages through apt, Python packages into .venv/) and runs
lints, C++ tests (ctest) and Python tests (pytest). The last line is the sum over all of them:

    N passed, N failed, N skipped

  --quick            leave out sanitizers, fuzzing, clang-tidy and tests marked slow
  --filter PATTERN   run the tests whose name matches alone (ctest -R, pytest -k)

examples:
  scripts/test.sh --quick                     before a commit
  scripts/test.sh --filter Reconcile --quick  one subject
  scripts/test.sh                             everything

Exit status: 0 all passed; 1 a test failed, or none ran; 2 usage; 4 something is missing that the
script cannot install. Logs are in build/logs, JUnit files in build/test-results.
FLOPLEDGER_JOBS sets the number of parallel jobs.
TEXT
}

quick=0
filter=""
while (($#)); do
  case "$1" in
    --quick) quick=1 ;;
    --filter)
      [[ -n "${2:-}" ]] || usage_error "--filter needs a pattern"
      filter="$2"
      shift
      ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) usage_error "unknown argument '$1'; accepted: --quick, --filter PATTERN, --help" ;;
  esac
  shift
done

cd -- "$REPOSITORY"
RESULTS="$REPOSITORY/build/test-results"
rm -rf -- "$RESULTS"
mkdir -p "$RESULTS"

# phase NAME COMMAND...: runs a part of the tests; the parts after a failed one still run.
phase() {
  local name="$1" start=$SECONDS status=0
  shift
  logged "$name" "$@" || status=$?
  printf '%s\t%s\t%s\n' "$name" "$status" $((SECONDS - start)) >>"$RESULTS/phases.tsv"
  return "$status"
}

# The lints have a phase of their own. By folder, not by preset: ctest takes several label filters
# as "all of them", so that a second one on top of the preset's would leave nothing out.
ctest_build() {
  local preset="$1" exclude="gpu|lint" arguments=()
  ((quick)) && exclude="gpu|lint|slow"
  [[ -n "$filter" ]] && arguments=(-R "$filter")
  phase "ctest $preset" ctest --test-dir "build/$preset" --output-on-failure \
    --output-junit "$RESULTS/ctest_$preset.xml" --label-exclude "$exclude" \
    --test-output-size-passed 8192 --parallel "$JOBS" "${arguments[@]}"
}

cpp_tests() {
  phase "configure $1" cmake --preset "$1" && phase "build $1" cmake --build --preset "$1" &&
    ctest_build "$1"
}

python_tests() {
  local marks="not gpu" arguments=() status=0
  ((quick)) && marks="not gpu and not slow"
  [[ -n "$filter" ]] && arguments=(-k "$filter")
  TORCHINDUCTOR_CACHE_DIR="$REPOSITORY/build/torchinductor" timeout --kill-after=10 1500 \
    "$VENV/bin/python" -m pytest -m "$marks" --junit-xml "$RESULTS/pytest.xml" \
    "${arguments[@]}" || status=$?
  # Status 5: nothing was collected. With a filter that is no failure of its own.
  if ((status == 5)) && [[ -n "$filter" ]]; then
    return 0
  fi
  return "$status"
}

# lints NAME [ARGUMENT...]: the lints, with their outcome in NAME.xml.
lints() {
  "$VENV/bin/python" tests/lint/run_lints.py --tools "$VENV/bin" --jobs "$JOBS" \
    --filter "$filter" --junit "$RESULTS/$1.xml" "${@:2}"
}

say "What the tests need:"
packages=(ccache libgtest-dev libgmock-dev libbenchmark-dev zlib1g-dev binutils)
if ((!quick)); then
  packages+=(clang-19 libclang-rt-19-dev prometheus prometheus-alertmanager chromium
    chromium-driver shellcheck)
fi
install_build_tools "${packages[@]}"
install_python torch "$TORCH" numpy
install_cuda_headers
install_python test 'pytest>=8' 'hypothesis>=6.100' 'prometheus-client>=0.20' 'ruff==0.17.6' \
  'transformers>=5' 'nvtx==0.2.17' \
  'clang-format==22.1.8'
((quick)) || install_python tidy 'clang-tidy==22.1.8'

say "Tests:"
failed=0
phase lint lints lint || failed=1
cpp_tests dev || failed=1
if phase "wheel" install_wheel; then
  phase pytest python_tests || failed=1
else
  failed=1
fi
if ((!quick)); then
  cpp_tests asan || failed=1
  cpp_tests tsan || failed=1
  cpp_tests fuzz || failed=1
  phase clang-tidy lints clang_tidy --tidy build/dev || failed=1
fi

"$VENV/bin/python" scripts/summarise_tests.py "$RESULTS" || failed=1
exit "$failed"
