# What the scripts of this folder share: one build for all packages, whose bytes depend on the source
# alone. To be sourced with `source_dir` set.
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC
version=$(sed -n 's/^project(gv100 VERSION \([0-9.]*\).*/\1/p' "$source_dir/CMakeLists.txt")

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  exit "${2:-1}"
}

# The date of what is packaged: given, or the newest commit's, or fixed where there is no history.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git -C "$source_dir" log -1 --format=%ct 2>/dev/null || echo 1700000000)
fi
export SOURCE_DATE_EPOCH

# Installs the portable build below $1. All packages have the same one, so the same binaries; it is
# made in $GV_PACKAGE_BUILD (a temporary folder otherwise), once.
install_build() {
  local stage=$1
  local build=${GV_PACKAGE_BUILD:-$work/build}
  cmake -S "$source_dir" -B "$build" -DGV_PORTABLE=ON -DGV_TESTS=OFF -DGV_WERROR=OFF \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX=/usr \
    -DCMAKE_INSTALL_LIBDIR=lib $(command -v ninja >/dev/null && echo "-G Ninja") \
    >"$work/log" 2>&1 && cmake --build "$build" --parallel "${GV_JOBS:-2}" >>"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2; fail "the build failed"; }
  DESTDIR=$stage cmake --install "$build" --strip >>"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2; fail "the installation failed"; }
}

# The newest glibc that the ELF files below $1 ask for must not be newer than $2.
check_glibc() {
  local newest file
  while read -r file; do
    newest=$(objdump -T "$file" 2>/dev/null | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1)
    newest=${newest#GLIBC_}
    [ "$(printf '%s\n%s\n' "${newest:-0}" "$2" | sort -V | tail -n 1)" = "$2" ] ||
      fail "$file needs glibc $newest, and $2 is promised"
  done < <(find "$1" -type f \( -name 'gv100' -o -name '*.so*' \) -exec sh -c \
    'head -c 4 "$1" | grep -q ELF && echo "$1"' _ {} \;)
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
