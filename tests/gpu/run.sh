#!/usr/bin/env bash
# The figures of a machine with GPUs, in at most 8 minutes.
#
#   tests/gpu/run.sh --pack [BUILD]   builds into BUILD (default: build-gpu) and copies the libraries
#                                     beside it, so that it runs where nothing is installed
#   tests/gpu/run.sh [BUILD [OUT]]    runs what is in BUILD, which is built first if it is not there;
#                                     reports go into OUT (default: $OUT, else BUILD/out)
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)

# Builds beside the folder $1 and copies into it what must travel: programs and libraries alone.
pack() {
  local obj=$1-obj
  cmake -S "$here" -B "$obj" -DGV_TESTS=ON -DGV_WERROR=OFF >/dev/null || exit 3
  cmake --build "$obj" --target gv100 gv-gpu-bench nccl-tuner-gv100 gv_virtual_cuda gv_virtual_nvml -j 2 || exit 3
  rm -rf "$1"
  mkdir -p "$1/bin" "$1/lib"
  cp "$obj/bin/gv100" "$obj/bin/gv-gpu-bench" "$1/bin/"
  cp -L "$obj"/lib/libnccl-tuner-gv100.so "$1/lib/"
  cp -rL "$obj/lib/virtual" "$1/lib/"
  for lib in libjansson libhwloc libudev libxml2 libicuuc libicudata libz libltdl liblzma; do
    ldd "$obj/bin/gv100" | awk -v l="$lib" '$1 ~ "^"l {print $3}' | xargs -r -I{} cp -L {} "$1/lib/"
  done
}

if [ "${1:-}" = --pack ]; then
  pack "${2:-$here/build-gpu}"
  exit
fi

build=${1:-$here/build-gpu}
if [ ! -x "$build/bin/gv-gpu-bench" ]; then
  pack "$build" || exit 3
fi
build=$(cd "$build" && pwd)
out=${2:-${OUT:-$build/out}}
mkdir -p "$out"
export LD_LIBRARY_PATH="$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" NO_COLOR=1
export GV100_STAMP="$out/verified.yaml"
gv100="$build/bin/gv100"
own=hbm,host,p2p,ring # without NCCL, which takes minutes

step() {
  local limit=$1 name=$2
  shift 2
  echo "== $name"
  local begin=$SECONDS
  timeout "$limit" "$@" 2>"$out/$name.err" | tee "$out/$name.txt"
  echo "-- status ${PIPESTATUS[0]}, $((SECONDS - begin)) s"
  head -c 1500 "$out/$name.err"
}

nvidia-smi --query-gpu=index,name,pci.bus_id,clocks.sm,clocks.mem,power.limit,temperature.gpu --format=csv
nvidia-smi topo -m 2>/dev/null | head -20
GV_BENCH_TRACE="$out/geometry.txt" step 200 bench "$build/bin/gv-gpu-bench"
for kind in copy read write triad; do
  echo "best geometries, $kind:"
  awk -v k="$kind" '/^GPU/ {on = ($1 == "GPU" && $2 == 0 && $3 == k)} on && /gv_/' "$out/geometry.txt" |
    sort -t: -k2 -rn | head -6
done
step 20 dry-run "$gv100" calibrate --dry-run
step 60 verify "$gv100" verify
step 60 quick "$gv100" calibrate --quick --only "$own" -o "$out/quick.yaml"
step 150 calibrate "$gv100" calibrate --only "$own" --json -o "$out/profile.yaml" --trace "$out/calibrate-geometry.txt"
step 20 show "$gv100" show --profile "$out/profile.yaml"
