#!/usr/bin/env bash
# Packs what check.sh needs on a machine where nothing can be built.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: tests/gpu/pack.sh [--python PROGRAM] [--help] FOLDER

Builds the wheel for a Python (default: python3; the one of the GPU machine has to be of the same
version) and puts it into FOLDER, with the shared libraries that it needs and a base system lacks
in FOLDER/libraries. The Python needs pip, scikit-build-core and nanobind. There:

    tests/gpu/check.sh --wheel FOLDER/flopledger-*.whl --libraries FOLDER/libraries

Exit status: 0; 2 usage; another one is that of what failed.
TEXT
}

python="python3" folder=""
while (($#)); do
  case "$1" in
    --python)
      python="${2:-}"
      shift
      ;;
    --help | -h)
      usage
      exit 0
      ;;
    -*)
      printf "pack.sh: unknown argument '%s'; accepted: --python, --help (see --help)\n" "$1" >&2
      exit 2
      ;;
    *) folder="$1" ;;
  esac
  shift
done
if [[ -z "$folder" || -z "$python" ]]; then
  printf 'pack.sh: it needs a folder, and --python a value (see --help)\n' >&2
  exit 2
fi

repository="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)"
mkdir -p "$folder/libraries"
rm -f -- "$folder"/flopledger-*.whl
"$python" -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$folder" "$repository"

scratch="$(mktemp -d)"
trap 'rm -rf -- "$scratch"' EXIT
"$python" -m zipfile -e "$folder"/flopledger-*.whl "$scratch"
# All but what every glibc system has.
ldd "$scratch"/flopledger/libflopledger.so* | awk '$3 ~ "^/" { print $3 }' |
  grep -vE '/(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+)\.so' |
  while read -r library; do cp -L -- "$library" "$folder/libraries/"; done
du -sh "$folder"
