# shellcheck shell=bash
# What the scripts beside this file share. Sourced, never run.

REPOSITORY="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="$REPOSITORY/.venv"
LOGS="$REPOSITORY/build/logs"
JOBS="${FLOPLEDGER_JOBS:-$(nproc)}"
export CMAKE_BUILD_PARALLEL_LEVEL="$JOBS"
# On a few cores OpenMP's waiting threads make a step several times slower as soon as anything else
# runs beside it (a scraper, a browser, a build).
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
export PIP_DISABLE_PIP_VERSION_CHECK=1

EXIT_USAGE=2
EXIT_MISSING=4

# Pinned, because a bare `torch` is another version every few weeks, and because which build an
# index serves differs by version: for x86-64 many serve CUDA builds of several gigabytes. Point
# pip at an index of CPU builds (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL) to avoid that.
# shellcheck disable=SC2034  # of the scripts that source this
TORCH="${FLOPLEDGER_TORCH:-torch==2.13.0}"

BUILD_PACKAGES=(g++ libspdlog-dev libfmt-dev prometheus-cpp-dev libevent-dev nlohmann-json3-dev
  libcli11-dev libexpected-dev libsimdjson-dev libisal-dev zlib1g-dev libsqlite3-dev
  libprotozero-dev)

say() { printf '%s\n' "$*"; }
complain() { printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2; }

usage_error() {
  complain "$1 (see --help)"
  exit "$EXIT_USAGE"
}

# Says every 20 seconds how long it has been. Its sleep dies with it and holds no one's pipe open.
tick() {
  trap 'kill "$!" 2>/dev/null; exit 0' TERM
  while :; do
    sleep 20 >/dev/null 2>&1 &
    wait "$!"
    printf '%s s ... ' $((SECONDS - $1))
  done
}

# logged NAME COMMAND...: runs a command with its output in a log file, says that it is still alive
# every 20 seconds, and shows the end of the log if it fails.
logged() {
  local name="$1" log="$LOGS/${1//[^a-zA-Z0-9]/_}.log" start=$SECONDS ticker status=0
  shift
  mkdir -p "$LOGS"
  printf '  %-34s' "$name"
  tick "$start" &
  ticker=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  if ((status == 0)); then
    printf '%s s\n' $((SECONDS - start))
  else
    printf 'FAILED after %s s (status %s)\n' $((SECONDS - start)) "$status"
    sed 's/^/    | /' <(tail -n 40 "$log")
    say "    the whole log: $log"
  fi
  return "$status"
}

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
      printf '%s\n' "$package"
  done
}

lists_are_old() {
  [[ -z "$(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' -mtime -7 -print -quit \
    2>/dev/null)" ]]
}

# install_packages PACKAGE...: installs what is not there yet, or says the line to run and stops.
install_packages() {
  local missing prefix=()
  if ! command -v dpkg-query >/dev/null; then
    complain "not a Debian or Ubuntu system; have these installed by their names here: $*"
    return 0
  fi
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  if [[ "$(id -u)" != 0 ]]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
      complain "system packages are missing, and neither root nor sudo is there. Run this, then"
      complain "start again:"
      say "sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
      exit "$EXIT_MISSING"
    fi
    prefix=(sudo -n)
  fi
  local apt=("${prefix[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120)
  if lists_are_old; then
    logged "package lists" "${apt[@]}" update
  fi
  logged "${#missing[@]} system packages" \
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
}

python_suits() {
  "$1" -c 'import sys, sysconfig, venv, ensurepip, pathlib
headers = pathlib.Path(sysconfig.get_path("include")) / "Python.h"
sys.exit(not ((3, 11) <= sys.version_info < (3, 14) and headers.is_file()))' 2>/dev/null
}

# A Python with venv and headers, as the path of its executable.
find_python() {
  local candidate
  for candidate in ${FLOPLEDGER_PYTHON:+"$FLOPLEDGER_PYTHON"} python3 python3.11 python3.12 \
    python3.13 /usr/bin/python3; do
    if command -v "$candidate" >/dev/null && python_suits "$candidate"; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return 0
    fi
  done
  return 1
}

cmake_suits() {
  command -v ninja >/dev/null && cmake --version 2>/dev/null | head -n 1 |
    awk '{ split($3, v, "."); exit !(v[1] > 3 || (v[1] == 3 && v[2] >= 25)) }'
}

# install_build_tools PACKAGE...: compilers, libraries, CMake, a Python, its virtual environment.
install_build_tools() {
  local packages=("${BUILD_PACKAGES[@]}" "$@") python
  cmake_suits || packages+=(cmake ninja-build)
  find_python >/dev/null || packages+=(python3 python3-venv python3-dev)
  install_packages "${packages[@]}"
  if ! python="$(find_python)"; then
    complain "no suitable Python: wanted 3.11, 3.12 or 3.13 with venv and its headers"
    complain "(packages python3-venv and python3-dev); FLOPLEDGER_PYTHON names one elsewhere"
    exit "$EXIT_MISSING"
  fi
  # The scripts of a virtual environment hold its path: one that was moved is made anew.
  if [[ "$(cat "$VENV/.made-for" 2>/dev/null)" != "$VENV $python" ]] ||
    ! "$VENV/bin/python" -c '' 2>/dev/null; then
    rm -rf "$VENV"
    logged "virtual environment .venv" "$python" -m venv "$VENV"
    printf '%s' "$VENV $python" >"$VENV/.made-for"
  fi
  export PATH="$VENV/bin:$PATH"
  cmake_suits || install_python cmake 'cmake>=3.25' ninja
}

# install_python NAME REQUIREMENT...: Python packages into the virtual environment, once.
install_python() {
  local name="$1" stamp="$VENV/.installed-$1"
  shift
  [[ "$(cat "$stamp" 2>/dev/null)" == "$*" ]] && return 0
  logged "Python packages: $name" "$VENV/bin/python" -m pip install "$@" || return
  printf '%s' "$*" >"$stamp"
}

# The headers that the device collector is compiled with, all of one CUDA release; their licence
# forbids to keep them here. The libraries beside them are used by tests, without a driver.
# shellcheck disable=SC2034  # of the scripts that source this
CUDA_WHEELS=(nvidia-cuda-cupti==13.0.85 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88
  nvidia-nvtx==13.0.85)

# Installs them and points the build at them, unless CUPTI_ROOT points elsewhere already. Without
# them everything else is built and tested, and the device collector says not_built.
install_cuda_headers() {
  [[ -n "${CUPTI_ROOT:-}" ]] && return 0
  if ! install_python cuda --no-deps "${CUDA_WHEELS[@]}"; then
    complain "no CUDA headers: the device collector is not built"
    return 0
  fi
  CUPTI_ROOT="$("$VENV/bin/python" -c \
    'import sysconfig; print(sysconfig.get_path("purelib") + "/nvidia/cu13")')"
  export CUPTI_ROOT
}

# The hash of everything that the wheel is made from.
wheel_sources_hash() {
  (
    cd -- "$REPOSITORY" || exit
    find CMakeLists.txt pyproject.toml README.md LICENSE cmake docs/alerts docs/grafana include src \
      python_bindings \
      -type f -not -path '*/__pycache__/*' -print0 |
      LC_ALL=C sort -z | xargs -0 sha256sum
    "$VENV/bin/python" -VV
    printf '%s\n' "${CUPTI_ROOT:-}"
  ) | sha256sum | cut -d ' ' -f 1
}

# Builds and installs the wheel if its sources have changed. The build folder is kept, so that the
# second build compiles what has changed and no more.
install_wheel() {
  local hash stamp="$VENV/.installed-flopledger"
  install_python build 'scikit-build-core>=0.11' 'nanobind>=2.9' || return
  hash="$(wheel_sources_hash)"
  [[ "$(cat "$stamp" 2>/dev/null)" == "$hash" ]] && return 0
  rm -f "$stamp"
  logged "build and install flopledger" "$VENV/bin/python" -m pip install --no-build-isolation \
    --no-deps --force-reinstall "$REPOSITORY" || return
  printf '%s' "$hash" >"$stamp"
}
