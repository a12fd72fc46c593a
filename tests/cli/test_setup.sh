#!/usr/bin/env bash
# What ./setup says when it cannot go on: the step, what is missing, what to do.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for tool in bash dirname id mkdir cat env sed tail nproc; do
  ln -s "$(command -v "$tool")" "$work/$tool"
done

# $1: status, $2: words, then the command
expect() {
  local status=$1 words=$2 out rc=0
  shift 2
  out=$("$@" 2>&1 </dev/null) || rc=$?
  if [ "$rc" -ne "$status" ] || ! grep -qF -- "$words" <<<"$out"; then
    printf 'FAILED: %s\n  status %s (wanted %s), wanted words: %s\n%s\n' "$*" "$rc" "$status" "$words" "$out"
    exit 1
  fi
}
setup=$GV_SOURCE_DIR/setup

expect 2 'Usage: ./setup' "$setup"
expect 2 'Usage: ./setup' "$setup" nonsense
expect 0 'Usage: ./setup' "$setup" --help
expect 1 'missing, and there is no apt-get: cmake ninja-build' \
  env PATH="$work" GV_BUILD_DIR="$work/build" "$setup" build

# A step that fails is named, with the end of its output and what to do.
printf '#!/bin/sh\necho no mirror >&2\nexit 1\n' >"$work/apt-get"
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$1" = -n ] && shift\nexec "$@"\n' >"$work/sudo"
chmod +x "$work/apt-get" "$work/sudo"
expect 1 "the step 'package lists' failed" \
  env PATH="$work" GV_BUILD_DIR="$work/build" "$setup" build
expect 1 'no mirror' env PATH="$work" GV_BUILD_DIR="$work/build" "$setup" build
echo "as expected"
