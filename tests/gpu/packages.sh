#!/usr/bin/env bash
# The packages under the stock PyTorch of a machine with GPUs: installed as they are (dpkg as root,
# unpacked otherwise; the wheel in a fresh virtual environment), then an all-reduce of
# torch.distributed in one process and in two ranks, each way in. Nothing is fetched.
#
# usage: packages.sh FOLDER [OUT]   FOLDER: gv100_*.deb, gv100-default_*.deb, gv100-*.whl
#   OUT (default: $OUT, else FOLDER) gets packages.json and the logs of what went wrong.
#   PYTHON (python3): one that imports torch. GV_UNPACK=1: dpkg -x although this is root.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
fail() {
  printf 'packages.sh: %s\n' "$1" >&2
  exit 3
}
case "${1:-}" in
"" | -h | --help)
  sed -n '2,9s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
from=$(cd "$1" && pwd) || fail "$1: no such folder"
out=${2:-${OUT:-$from}}
mkdir -p "$out" || fail "$out: cannot be written"
python=$(command -v "${PYTHON:-python3}") || fail "${PYTHON:-python3} is missing"

# The one file of a pattern.
one() {
  local files=("$from"/$1)
  [ "${#files[@]}" -eq 1 ] && [ -f "${files[0]}" ] || fail "$from: one $1 is needed, there are: ${files[*]}"
  printf '%s\n' "${files[0]}"
}
deb=$(one 'gv100_*.deb') && default=$(one 'gv100-default_*.deb') && wheel=$(one 'gv100-*.whl') || exit 3
command -v dpkg >/dev/null || fail "dpkg is missing: this is for Debian and Ubuntu"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset NCCL_ENV_PLUGIN NCCL_TUNER_PLUGIN NCCL_TOPO_FILE LD_PRELOAD GV100_PROFILE GV100_DISABLE

# The .deb packages. `root` is what stands before their paths, `libraries` where the loader must look.
if [ "$(id -u)" = 0 ] && [ "${GV_UNPACK:-}" != 1 ]; then
  dpkg -i "$deb" "$default" || fail "dpkg -i failed"
  how="dpkg -i" root="" libraries=""
else
  root=$tmp/root
  dpkg -x "$deb" "$root" && dpkg -x "$default" "$root" || fail "dpkg -x failed"
  how="dpkg -x" libraries=$root/usr/lib
fi
"$root/usr/bin/gv100" --version || fail "the command of the .deb does not start"

# The wheel. A virtual environment made by one that is itself virtual sees the system's packages
# alone, so the folder that torch is in is named to it. Without ensurepip the outer pip installs.
"$python" -m venv --system-site-packages "$tmp/venv" >"$tmp/pip.log" 2>&1 ||
  "$python" -m venv --system-site-packages --without-pip --clear "$tmp/venv" >"$tmp/pip.log" 2>&1 ||
  { cat "$tmp/pip.log" >&2; fail "no virtual environment"; }
venv=$tmp/venv/bin/python
if ! "$venv" -c 'import torch' >/dev/null 2>&1; then
  site=$("$venv" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  "$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' >"$site/outer.pth" ||
    fail "$python does not import torch; name one that does: PYTHON=/path/python3"
fi
if "$venv" -m pip --version >/dev/null 2>&1; then
  "$venv" -m pip --disable-pip-version-check install --no-index --no-deps "$wheel" >"$tmp/pip.log" 2>&1
else
  "$python" -m pip --disable-pip-version-check install --no-index --no-deps --target "$tmp/wheel" "$wheel" \
    >"$tmp/pip.log" 2>&1 && ln -s "$tmp/wheel/bin/gv100" "$tmp/venv/bin/gv100" && echo "$tmp/wheel" >"$("$venv" -c \
    'import sysconfig; print(sysconfig.get_path("purelib"))')/wheel.pth"
fi || { cat "$tmp/pip.log" >&2; fail "pip install failed"; }
[ -x "$tmp/venv/bin/gv100" ] || fail "the wheel brought no gv100 into $tmp/venv/bin"
"$tmp/venv/bin/gv100" --version || fail "the command of the wheel does not start"

# What was installed says how a job is to be started; kept beside the figures.
"$root/usr/bin/gv100" env "$python" --json >"$out/env-deb.json" || rm -f "$out/env-deb.json"
"$tmp/venv/bin/gv100" env "$venv" --json >"$out/env-wheel.json" || rm -f "$out/env-wheel.json"

"$python" "$here/packages.py" --how "$how" --root "$root" --libraries "$libraries" --python "$python" \
  --venv "$tmp/venv" --work "$tmp" --out "$out"
status=$?
if [ -z "$root" ]; then
  "$root/usr/bin/gv100" doctor "$python" 2>&1 | head -60
  dpkg --purge gv100-default gv100 || { echo "dpkg --purge failed" >&2; status=1; }
  left=$(find /usr/bin /usr/lib /usr/share /etc -maxdepth 3 -name '*gv100*' 2>/dev/null)
  [ -z "$left" ] || { printf 'left behind:\n%s\n' "$left" >&2; status=1; }
fi
exit "$status"
