#!/usr/bin/env bash
# NCCL's workers on a real machine: on one GPU, or on two where they are there (default, forced SHM,
# default again, in turn). At most three minutes. JSON of every run goes to $OUT where that is set.
#
# usage: compare.sh FOLDER [NCCL]   FOLDER: a build (bin/gv100, lib/libnccl-tuner-gv100.so; libraries
# that this machine lacks in extra/)   NCCL: a libnccl.so.2; without it the one that gv100 finds
set -u
build=$(cd "$1" && pwd)
named=${2:+--nccl "$2"}
export LD_LIBRARY_PATH=$build/extra${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
out=${OUT:-$(mktemp -d)}
failed=0
before=$(ls /dev/shm | sort)

run() { # name, seconds, arguments: the table on stdout, the run in $out/NAME.json
  local name=$1 bound=$2 rc
  shift 2
  echo "== $name: gv100 compare $*"
  timeout "$bound" "$build/bin/gv100" compare $named "$@" --save "$out/$name.json" 2> "$out/$name.err"
  rc=$?
  [ $rc = 0 ] || { echo "FAILED $name: status $rc"; failed=1; }
  tail -5 "$out/$name.err"
  grep -H '"nwrong": [1-9]' "$out/$name.json" 2> /dev/null && failed=1
  "$build/bin/gv100" compare "$out/$name.json" --json > "$out/$name.again.json" &&
    python3 - "$out/$name.json" "$out/$name.again.json" << 'PY' || failed=1
import json, sys
# --json prints twelve digits, the saved run holds all of them
digits = lambda text: float("%.12g" % float(text))
a, b = (json.load(open(p), parse_float=digits) for p in sys.argv[1:])
for run in (a, b): # where it was read from
    run.pop("loaded")
print("saved run read again:", "the same" if a == b else "DIFFERS")
sys.exit(a != b)
PY
}

ops=AllReduce,AllGather,ReduceScatter,Broadcast,Reduce,AllToAll
n=$(nvidia-smi --query-gpu=index --format=csv,noheader | wc -l)
if [ "$n" -ge 2 ]; then
  run two 90 --gpus 0-1 --variant "separate 0-1" -o AllReduce,AllToAll -b 64K -e 256M -f 64
  run operations 45 --gpus 0-1 --variant "separate 0-1" -o $ops -b 4M -e 4M --in-place --repeats 3
  run threads 40 --gpus 0-1 --variant "separate 0-1" -o AllReduce -b 1M -e 64M -f 64 --threads --repeats 3
  for type in half bfloat16 double int32 uint8; do
    run "type-$type" 30 --gpus 0-1 --variant "separate 0-1" -o AllReduce -b 1M -e 1M --type $type --repeats 1
  done
else
  export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo} NCCL_IB_DISABLE=1
  run one 60 --gpus 0 -o $ops -b 64K -e 16M -f 16 --repeats 3
  run ranks 80 --gpus 0 --ranks-per-gpu 2 -o AllReduce,AllToAll -b 64K -e 16M -f 16 --repeats 3
fi
after=$(ls /dev/shm | sort)
[ "$before" = "$after" ] || { echo "left in /dev/shm:"; diff <(echo "$before") <(echo "$after"); failed=1; }
pgrep -fa 'gv100 compare --worker' && { echo "workers are left"; failed=1; }
echo "failed $failed"
exit $failed
