#!/usr/bin/env bash
# The plugin is mounted into old containers: no symbol of it may be newer than glibc 2.28, and
# nothing but glibc's own libraries may be needed.
set -euo pipefail
plugin=$GV_LIB_DIR/libnccl-tuner-gv100.so
if readelf -d "$plugin" | grep -qE 'lib[atu]san'; then
  echo "skipped: a build with sanitizers"
  exit 77
fi
objdump -T "$plugin" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu >"${TMPDIR:-/tmp}/gv-glibc.$$"
newest=$(tail -n 1 "${TMPDIR:-/tmp}/gv-glibc.$$")
rm -f "${TMPDIR:-/tmp}/gv-glibc.$$"
[ -n "$newest" ] || { echo "FAILED: no symbol version could be read"; exit 1; }
if [ "$(printf '%s\nGLIBC_2.28\n' "$newest" | sort -V | tail -n 1)" != GLIBC_2.28 ]; then
  echo "FAILED: symbols newer than glibc 2.28 (cmake/glibc_floor.c has those that are bound to older ones):"
  objdump -T "$plugin" | grep -F "$newest"
  exit 1
fi
others=$(readelf -d "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
  grep -vxE 'lib(c|m|dl|pthread)\.so\.[0-9]+|ld-linux-.*\.so\.[0-9]+' || true)
[ -z "$others" ] || { echo "FAILED: needs more than glibc: $others"; exit 1; }
echo "as expected: $newest at most"
