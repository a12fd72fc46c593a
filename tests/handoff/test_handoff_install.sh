#!/usr/bin/env bash
# A program outside of the tree builds against the installed library by pkg-config, shared and static, in C
# and in C++, and gets an error in words where there is no driver.
set -euo pipefail
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
  printf 'FAILED %s\n' "$1"
  exit 1
}
cmake --install "$(dirname "$GV_BIN_DIR")" --component handoff --prefix "$root/first" >/dev/null
mv "$root/first" "$root/moved" # an installed tree may be moved
pc=$(find "$root/moved" -name gv-handoff.pc)
export PKG_CONFIG_PATH=${pc%/*}
cat >"$root/program.c" <<'C'
#include <gv_handoff.h>
#include <stdio.h>
int main(void)
{
    gv_handoff *h = NULL;
    char text[300] = "";
    struct gv_handoff_options o = {0};
    o.struct_bytes = sizeof(o);
    o.destination = 1;
    o.bytes = 1 << 20;
    o.driver = "/nonexistent/libcuda.so.1";
    int rc = gv_handoff_create(&o, &h, text, sizeof(text));
    printf("%d %d %s\n", rc, h == NULL, text);
    gv_handoff_destroy(h);
    return 0;
}
C
lib=$(pkg-config --variable=libdir gv-handoff)
sanitize=${GV_SANITIZE:+-fsanitize=$GV_SANITIZE} # what the library needs then is in the program
check() {
  local got
  got=$(LD_LIBRARY_PATH=$lib "$root/$1") || fail "$1 does not run"
  grep -q '^-3 1 no CUDA driver (/nonexistent' <<<"$got" || fail "$1: $got"
}
cc=${CC:-cc}
# shellcheck disable=SC2046
$cc $sanitize -Wall -Wextra -Werror -o "$root/shared" "$root/program.c" $(pkg-config --cflags --libs gv-handoff)
check shared
ldd "$root/shared" >/dev/null
# shellcheck disable=SC2046
if pkg-config --exists yaml-0.1; then
  $cc $sanitize -o "$root/static" "$root/program.c" $(pkg-config --cflags gv-handoff) "$lib/libgv-handoff.a" \
    $(pkg-config --libs yaml-0.1) -ldl -lm -lpthread
  check static
fi
if command -v c++ >/dev/null; then
  cp "$root/program.c" "$root/program.cc"
  # shellcheck disable=SC2046
  c++ $sanitize -Wall -Werror -o "$root/plus" "$root/program.cc" $(pkg-config --cflags --libs gv-handoff)
  check plus
fi
so=$(readlink -f "$lib/libgv-handoff.so")
# From outside it needs glibc alone, and shows its own calls alone.
others=$(readelf -d "$so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^lib(c|m|dl|pthread)\.so' || true)
[ -z "$others" ] || [[ "$others" == *san* ]] || fail "it needs $others"
exported=$(nm -D --defined-only "$so" | awk '{print $3}' | sort)
declared=$(grep -oE '[a-z_]+\(' "$root/moved/include/gv100/gv_handoff.h" | tr -d '(' | grep '^gv_handoff_' | sort -u)
[ "$exported" = "$declared" ] || fail "it shows $exported; the header has $declared"
echo "as expected"
