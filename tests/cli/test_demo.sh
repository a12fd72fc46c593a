#!/usr/bin/env bash
# The demo runs to its end, fits 100 columns, and needs no colour.
set -euo pipefail
out=$(cd "$GV_SOURCE_DIR" && python3 -B testbench/demo/demo.py "$(dirname "$GV_BIN_DIR")")
fail() {
  printf 'FAILED %s\n%s\n' "$1" "$out"
  exit 1
}
grep -q 'All 7 as decided above, and an all-to-all works' <<<"$out" || fail "the last line"
grep -q '7.94 GB/s .* 4 =P2P= 5 =P2P= 0' <<<"$out" || fail "the tuned ring"
! grep -q $'\033' <<<"$out" || fail "escape sequences in a pipe"
! grep -qE '.{101}' <<<"$out" || fail "a line over 100 columns"
echo "as expected"
