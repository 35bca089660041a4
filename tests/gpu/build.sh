#!/usr/bin/env bash
# Builds the library and the Python module in build/gpu and lays the package out in a folder. For
# check.sh:  build.sh PYTHON FOLDER
set -euo pipefail

python="$1" site="$2"
repository="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)"
build="$repository/build/gpu"

# The toolkit that the compiler of this machine belongs to, unless another one is named.
if [[ -z "${CUPTI_ROOT:-}" ]] && command -v nvcc >/dev/null; then
  CUPTI_ROOT="$(dirname -- "$(dirname -- "$(readlink -f "$(command -v nvcc)")")")"
  export CUPTI_ROOT
fi

cmake -S "$repository" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DFLOPLEDGER_BUILD_PYTHON=ON -DFLOPLEDGER_BUILD_TESTS=OFF \
  -DPython_EXECUTABLE="$(command -v "$python")"
cmake --build "$build" --target flopledger _core

rm -rf -- "$site"
mkdir -p "$site/flopledger/include/flopledger"
cp -r -- "$repository"/python_bindings/flopledger/. "$site/flopledger/"
# The module finds the library where it was built.
cp -- "$build"/python_bindings/_core*.so "$site/flopledger/"
cp -- "$repository/include/flopledger/host_ops.h" "$site/flopledger/include/flopledger/"
