#!/usr/bin/env bash
# An installed tree works by itself, wherever it lies: the command finds its profiles and its plugin.
set -euo pipefail
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
unset GV100_PROFILE_DIR GV100_PLUGIN GV100_PROFILE

fail() {
  printf 'FAILED %s\n' "$1"
  exit 1
}
cmake --install "$(dirname "$GV_BIN_DIR")" --prefix "$prefix" >/dev/null
gv100=$prefix/bin/gv100
out=$("$gv100" explain --profile 4028 --gpus 0-5)
grep -q '^GPUs 0-5 .*P2P' <<<"$out" || fail "explain"
out=$("$gv100" show --profile 4028)
grep -qF "$(realpath "$prefix")/share/gv100/profiles/4028.yaml" <<<"$out" || fail "the profile's place"
plugin=$(find "$(realpath "$prefix")" -name libnccl-tuner-gv100.so)
out=$("$gv100" env --nccl 2.28.9)
grep -qxF "export NCCL_ENV_PLUGIN=$plugin" <<<"$out" || fail "the plugin's place"

# A man page for gv100 and for each command, with every option that --help names.
man=$prefix/share/man/man1
test -s "$man/gv100.1" || fail "gv100.1"
for page in "$man"/gv100-*.1; do
  name=$(basename "$page" .1)
  name=${name#gv100-}
  grep -qF "gv100\\-$name" "$man/gv100.1" || fail "$name is not in gv100.1"
  while read -r option; do
    grep -qF "\\-\\-${option//-/\\-}" "$page" || fail "--$option is not in the page of $name"
  done < <("$gv100" "$name" --help | grep -oE '^ +(-.,)? +--[a-z0-9-]+' | grep -oE '[a-z0-9-]+$' | sed 's/^--//' | grep -vE '^(help|usage)$')
done
echo "as expected"
