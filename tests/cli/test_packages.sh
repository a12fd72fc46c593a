#!/usr/bin/env bash
# The packages as they are installed: same bytes from two builds, nothing left behind, and NCCL finds
# the plugin in them. Everything happens below a temporary folder.
set -euo pipefail
skip() {
  printf 'skipped: %s\n' "$1"
  exit 77
}
fail() {
  printf 'FAILED %s\n' "$1"
  exit 1
}
[ -z "${GV_SANITIZE:-}" ] || skip "packages are made of release builds, which the other presets test"
for tool in dpkg dpkg-deb ldconfig objdump python3; do
  PATH=$PATH:/sbin:/usr/sbin command -v "$tool" >/dev/null || skip "$tool is missing"
done
case $(uname -m) in x86_64 | aarch64) ;; *) skip "packages are for x86_64 and aarch64" ;; esac
for archive in libjansson.a libhwloc.a libxml2.a; do
  [ -f "$(cc -print-file-name=$archive)" ] || skip "$archive is missing"
done
export PATH=$PATH:/sbin:/usr/sbin SOURCE_DATE_EPOCH=1700000000
unset GV100_PROFILE_DIR GV100_PLUGIN GV100_PROFILE
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT

# Two builds: another folder for the source, another for the build.
copy() {
  mkdir "$1"
  tar -C "$GV_SOURCE_DIR" --exclude=./build* --exclude=./.git -cf - . | tar -C "$1" -xf -
}
copy "$t/one"
copy "$t/the-other"
GV_PACKAGE_BUILD=$t/b1 "$t/one/packaging/build-deb" "$t/out1" >/dev/null
GV_PACKAGE_BUILD=$t/b1 "$t/one/packaging/build-wheel" "$t/out1" >/dev/null
touch "$t/the-other/README.md"
GV_PACKAGE_BUILD=$t/b-2 "$t/the-other/packaging/build-deb" "$t/out2" >/dev/null
GV_PACKAGE_BUILD=$t/b-2 "$t/the-other/packaging/build-wheel" "$t/out2" >/dev/null
for file in "$t"/out1/*; do
  cmp "$file" "$t/out2/$(basename "$file")" || fail "two builds differ: $(basename "$file")"
done
[ "$(find "$t/out1" -type f | wc -l)" -eq 3 ] || fail "not three packages: $(ls "$t/out1")"

# dpkg with a root of its own; maintainer scripts run outside of it and take DPKG_ROOT.
package() {
  dpkg --root="$root" --force-script-chrootless --force-not-root --force-depends \
    --log="$t/dpkg.log" "$@" >"$t/out" 2>&1
}
new_root() {
  root=$t/$1
  mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/etc"
  : >"$root/var/lib/dpkg/status"
}
# What is there, but dpkg's and the loader's own files.
list() {
  (cd "$root" && find . \( -path ./var/lib/dpkg -o -path ./var/cache \) -prune -o -print |
    grep -vxF ./etc/ld.so.cache | sort)
}
gv=$(echo "$t"/out1/gv100_*.deb)
default=$(echo "$t"/out1/gv100-default_*.deb)
new_root host
before=$(list)
package -i "$gv" "$default" || { cat "$t/out"; fail "install"; }
"$root/usr/bin/gv100" explain --profile 4028 --gpus 0-5 | grep -q '^GPUs 0-5 .*P2P' || fail "explain"
plugin=$(realpath "$root")/usr/lib/libnccl-tuner-gv100.so
"$root/usr/bin/gv100" env --nccl 2.28.9 | grep -qxF "export NCCL_ENV_PLUGIN=$plugin" || fail "the plugin's place"

# NCCL finds it by the names that people set; without one, the default name is inert but loaded.
nccl=$GV_LIB_DIR/host/libnccl.so.2
if [ -f "$nccl" ]; then
  for set in NCCL_TUNER_PLUGIN=gv100 NCCL_ENV_PLUGIN=gv100; do
    env GV_HOST_RELEASE=2.28.9 LD_LIBRARY_PATH="$root/usr/lib" "$set" \
      "$root/usr/bin/gv100" doctor --probe-nccl "$nccl" | grep -qx 'gv100-probe loaded 1' ||
      fail "$set does not load it"
  done
fi

# The boot unit: it runs where a profile is for this machine, changed or not, and nowhere else.
unit=$root/usr/lib/systemd/system/gv100-verify.service
condition=$(sed -n "s|^ExecCondition=/bin/sh -c '/usr/bin/gv100 \(.*\)'$|$root/usr/bin/gv100 \1|p" "$unit")
[ -n "$condition" ] || fail "the unit has no condition: $(cat "$unit")"
grep -qx 'ExecStart=/usr/bin/gv100 verify --if-needed' "$unit" || fail "what the unit starts"
if [ -x "$GV_BIN_DIR/gv-sysfs" ]; then
  unit_runs() { GV100_SYSFS=$1 sh -c "$condition" 2>"$t/out"; }
  mkdir "$t/sys" "$t/no-machine"
  "$GV_BIN_DIR/gv-sysfs" 4028 "$t/sys"
  unit_runs "$t/sys" || { cat "$t/out"; fail "the unit does not run on a machine with a profile"; }
  width=$t/sys/bus/pci/devices/0000:1c:00.0/current_link_width
  rm "$width" && echo 4 >"$width"
  unit_runs "$t/sys" || { cat "$t/out"; fail "the unit does not run where a link changed"; }
  if unit_runs "$t/no-machine"; then fail "the unit runs where there is no profile"; fi
fi

# Upgrade: the same content under a later version. Nothing is there twice, or lost.
installed=$(list)
for deb in "$gv" "$default"; do
  rm -rf "$t/repack"
  dpkg-deb -R "$deb" "$t/repack"
  sed -i -e 's/^Version: .*/Version: 99/' -e 's/(= [0-9.]*)/(= 99)/' "$t/repack/DEBIAN/control"
  dpkg-deb --root-owner-group -b "$t/repack" "$t/new-$(basename "$deb")" >/dev/null
done
package -i "$t"/new-*.deb || { cat "$t/out"; fail "upgrade"; }
[ "$(list)" = "$installed" ] || fail "an upgrade changes which files there are"

mkdir -p "$root/var/lib/gv100"
echo stamp >"$root/var/lib/gv100/verified.yaml"
echo profile >"$root/etc/gv100/host.yaml"
package -r gv100-default gv100 || { cat "$t/out"; fail "remove"; }
[ -f "$root/etc/gv100/host.yaml" ] || fail "remove takes the administrator's profile"
package -P gv100 gv100-default || { cat "$t/out"; fail "purge"; }
after=$(list)
[ "$(comm -13 <(echo "$before") <(echo "$after") | grep -vE '^\./(etc/systemd.*|usr|usr/lib|usr/share|var/lib)$' || true)" = "" ] ||
  fail "left behind: $(comm -13 <(echo "$before") <(echo "$after"))"

# Another env plugin under the default name is kept, and the package refuses.
new_root other
mkdir -p "$root/usr/lib"
echo theirs >"$root/usr/lib/libnccl-env.so"
package -i "$gv" || { cat "$t/out"; fail "gv100 beside another env plugin"; }
if package -i "$default"; then fail "gv100-default installs over another env plugin"; fi
grep -q "another env plugin is installed" "$t/out" || { cat "$t/out"; fail "and does not say why"; }
[ "$(cat "$root/usr/lib/libnccl-env.so")" = theirs ] || fail "the other env plugin was touched"

# The wheel, in a fresh virtual environment.
if ! python3 -m venv "$t/venv" >"$t/out" 2>&1; then
  echo "as expected (the wheel was not installed: python3 has no venv)"
  exit 0
fi
content() { (cd "$t/venv" && find . -name __pycache__ -prune -o \( ! -type d -o -name '*gv100*' \) -print | sort); }
content >"$t/venv-before"
wheel=$(echo "$t"/out1/*.whl)
"$t/venv/bin/pip" --disable-pip-version-check install --no-index --no-deps "$wheel" >"$t/out" 2>&1 ||
  { cat "$t/out"; fail "pip install"; }
"$t/venv/bin/gv100" explain --profile 4028 --gpus 0-5 | grep -q '^GPUs 0-5 .*P2P' || fail "explain from the wheel"
plugin=$("$t/venv/bin/python" -c 'import gv100; print(gv100.plugin())')
"$t/venv/bin/gv100" env --nccl 2.27.5 | grep -qF "export LD_PRELOAD=$plugin" || fail "the wheel's plugin: $plugin"
cmp "$plugin" <(dpkg-deb --fsys-tarfile "$gv" | tar -xO ./usr/lib/libnccl-tuner-gv100.so) || fail "not the same binaries"
"$t/venv/bin/pip" --disable-pip-version-check uninstall -y gv100 >"$t/out" 2>&1 || fail "pip uninstall"
left=$(content | comm -13 "$t/venv-before" -)
[ -z "$left" ] || fail "left behind by the wheel: $left"
echo "as expected"
