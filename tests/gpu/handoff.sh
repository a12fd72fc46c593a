#!/usr/bin/env bash
# The hand-off on real GPUs, in at most 2 minutes: every way in a program, bit for bit, on streams,
# captured and as graph nodes; then gv100 handoff. With one GPU it is source and destination; with two
# or more, 0 and 1 as well.
#
#   tests/gpu/handoff.sh --pack [BUILD]   builds, and copies into BUILD (default: build-handoff) what must travel
#   tests/gpu/handoff.sh [BUILD [OUT]]    runs what is in BUILD; reports go into OUT (default: $OUT, else BUILD/out)
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)

pack() {
  local obj=${GV_OBJ:-$1-obj}
  [ -d "$obj" ] || cmake -S "$here" -B "$obj" -DGV_TESTS=ON -DGV_WERROR=OFF >/dev/null || exit 3
  cmake --build "$obj" --target gv100 gv-handoff gv-handoff-job -j 2 || exit 3
  rm -rf "$1"
  mkdir -p "$1/bin" "$1/lib"
  cp "$obj/bin/gv100" "$obj/bin/gv-handoff-job" "$1/bin/"
  cp -L "$obj/lib/libgv-handoff.so.0" "$1/lib/"
  for lib in libjansson libhwloc libudev libxml2 libicuuc libicudata libz libltdl liblzma; do
    ldd "$obj/bin/gv100" | awk -v l="$lib" '$1 ~ "^"l {print $3}' | xargs -r -I{} cp -L {} "$1/lib/"
  done
}

if [ "${1:-}" = --pack ]; then
  pack "${2:-$here/build-handoff}"
  exit
fi

build=$(cd "${1:-$here/build-handoff}" && pwd) || exit 3
out=${2:-${OUT:-$build/out}}
mkdir -p "$out"
export LD_LIBRARY_PATH="$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" NO_COLOR=1
gpus=$(nvidia-smi -L | grep -c '^GPU')
begin=$SECONDS
nvidia-smi --query-gpu=index,name,pci.bus_id,driver_version --format=csv

# way of the job: options, the method that must be in use
job() {
  local wanted=$1
  shift
  local answer
  answer=$(timeout 30 "$build/bin/gv-handoff-job" "$@" 2>&1)
  if grep -q "\"method\": \"$wanted\".*\"lines\": 0.*\"wrong\": 0, \"units\": 0, \"recaptured\": 0" <<<"$answer"; then
    printf 'ok      %-14s %s\n' "$wanted" "$*"
  else
    printf 'FAILED  %-14s %s\n        %s\n' "$wanted" "$*" "$answer"
  fi | tee -a "$out/jobs.txt"
}

pairs=("0 0")
[ "$gpus" -gt 1 ] && pairs+=("0 1" "1 0")
: >"$out/jobs.txt"
for pair in "${pairs[@]}"; do
  read -r from to <<<"$pair"
  for how in stream capture node; do
    for way in "host 1 host, mapped" "host 2 host, staged" "peer 3 peer copy" "peer 4 peer read"; do
      read -r mode method name <<<"$way"
      job "$name" --from "$from" --to "$to" --mode "$mode" --method "$method" --how "$how" --bytes 4194304 --steps 6 --rounds 3
    done
  done
  job "peer copy" --from "$from" --to "$to" --mode peer --bytes 33554432 --steps 3 --rounds 1
  job "peer read" --from "$from" --to "$to" --mode peer --method 4 --target 1 --bytes 4194304
done
[ "$gpus" -gt 1 ] && job "peer copy" --mode peer --enabled 1 --bytes 4194304
echo "-- programs: $((SECONDS - begin)) s"

ab() {
  local name=$1
  shift
  echo "== gv100 handoff $*"
  timeout 40 "$build/bin/gv100" handoff "$@" 2>&1 | tee "$out/$name.txt"
  echo "-- status ${PIPESTATUS[0]}, $((SECONDS - begin)) s since the start"
}
for pair in "${pairs[@]:0:2}"; do
  read -r from to <<<"$pair"
  ab "plain-$from-$to" --from "$from" --to "$to" --bytes 320M
  ab "waits-$from-$to" --from "$from" --to "$to" --bytes 16M --compute-us 300 --graph
  ab "traffic-$from-$to" --from "$from" --to "$to" --bytes 16M --compute-us 300 --host-traffic
  ab "tie-$from-$to" --from "$from" --to "$to" --bytes 1M --compute-us 50000 --steps 2
  timeout 30 "$build/bin/gv100" handoff --from "$from" --to "$to" --bytes 64M --graph --json >"$out/graph-$from-$to.json" || echo "-- json: status $?"
done
echo "-- all: $((SECONDS - begin)) s; $(grep -c FAILED "$out/jobs.txt") programs failed"
! grep -q FAILED "$out/jobs.txt"
