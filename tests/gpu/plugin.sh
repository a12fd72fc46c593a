#!/usr/bin/env bash
# The plugin under the NCCL of a real machine with two GPUs: env plugin and preload, threads and
# processes, C and PyTorch. Prints transports as NCCL's log states them, errors in the results, busbw.
#
# usage: plugin.sh FOLDER [ONLY]   FOLDER: a build (lib/libnccl-tuner-gv100.so, bin/gv100); ONLY: the runs
#                                  whose names match this expression
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
only=${2:-.}
plugin=$build/lib/libnccl-tuner-gv100.so
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LD_LIBRARY_PATH=$build/extra${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

nccl=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0])')
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -e "$nccl/lib/libnccl.so" ] || { mkdir -p "$tmp/link"; ln -s "$nccl/lib/libnccl.so.2" "$tmp/link/libnccl.so"; }
gcc -O2 "$here/nccl_job.c" -o "$tmp/job" -I"$nccl/include" -I"$cuda/include" -L"$tmp/link" -L"$nccl/lib" \
  -L"$cuda/lib64" -lnccl -lcudart || exit 1
for state in verified corrupt; do
  python3 "$here/profile.py" $state rows > "$tmp/$state.yaml"
  "$build/bin/gv100" explain --profile "$tmp/$state.yaml" --gpus 0-1 | sed -n 3,9p
done

export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING,ENV GV100_ASSUME_VERIFIED=1
seen() { # name, log: the plugin's slots, transports, channels, results
  echo "== $1"
  grep -hoE 'Using gv100 \(v[0-9]+\)|Successfully loaded external (env|tuner|network) plugin|gv100: .*' "$2" | sort | uniq -c | cut -c1-230
  grep -hoE 'via (P2P|SHM)/[A-Za-z/]+' "$2" | sort | uniq -c
  grep -hoE '[0-9]+ coll channels' "$2" | sort | uniq -c
  grep -hE '^set|^torch|NCCL WARN|rror' "$2" | cut -c1-200 | sort | uniq -c | head -12
}
threads() { # name, env...: two communicators on both GPUs alive together in one process
  local name=$1; shift
  [[ $name =~ $only ]] || return 1
  env LD_LIBRARY_PATH="$nccl/lib:$cuda/lib64:$LD_LIBRARY_PATH" "$@" timeout 100 "$tmp/job" 0,1 0,1 > "$tmp/log" 2>&1
  echo "rc $?" >> "$tmp/log"; seen "$name" "$tmp/log"
}
ranks() { # name, env... -- cmd: one process a GPU, as a launcher starts them
  local name=$1; shift
  [[ $name =~ $only ]] || return 1
  rm -f "$tmp/id"
  for r in 0 1; do
    env RANK=$r LOCAL_RANK=$r WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 \
      GV_ID_FILE="$tmp/id" "$@" > "$tmp/log.$r" 2>&1 &
  done
  wait
  cat "$tmp/log.0" "$tmp/log.1" > "$tmp/log"; seen "$name" "$tmp/log"
}
torch=(timeout 120 python3 "$here/torch_job.py")
groups=("${torch[@]}" groups)
job=(env "LD_LIBRARY_PATH=$nccl/lib:$cuda/lib64:$LD_LIBRARY_PATH" timeout 100 "$tmp/job" --ranks 2)

threads "C threads, no plugin"
threads "C threads, env plugin, verified" NCCL_ENV_PLUGIN="$plugin" GV100_PROFILE="$tmp/verified.yaml" GV100_SINGLE_NODE=1
threads "C threads, env plugin, corrupt" NCCL_ENV_PLUGIN="$plugin" GV100_PROFILE="$tmp/corrupt.yaml" GV100_SINGLE_NODE=1
threads "C threads, preload, corrupt" LD_PRELOAD="$plugin" GV100_PROFILE="$tmp/corrupt.yaml"
ranks "C processes, env plugin, corrupt" NCCL_ENV_PLUGIN="$plugin" GV100_PROFILE="$tmp/corrupt.yaml" "${job[@]}"
ranks "PyTorch, no plugin" "${torch[@]}"
ranks "PyTorch, env plugin, verified" NCCL_ENV_PLUGIN="$plugin" GV100_PROFILE="$tmp/verified.yaml" "${torch[@]}"
ranks "PyTorch, env plugin, corrupt" NCCL_ENV_PLUGIN="$plugin" GV100_PROFILE="$tmp/corrupt.yaml" "${torch[@]}"
ranks "PyTorch, preload, corrupt" LD_PRELOAD="$plugin" GV100_PROFILE="$tmp/corrupt.yaml" "${torch[@]}"
for way in NCCL_ENV_PLUGIN LD_PRELOAD; do # one job, process groups with different decisions
  ranks "PyTorch, four groups, $way, corrupt" $way="$plugin" GV100_PROFILE="$tmp/corrupt.yaml" "${groups[@]}" &&
    "$build/bin/gv100" log "$tmp/log"
done
ranks "PyTorch, preload, other machine's profile" LD_PRELOAD="$plugin" GV100_PROFILE=4028 GV100_PROFILE_DIR="$build/share/gv100/profiles" "${torch[@]}"
old=$(find /usr/lib /usr/local -name 'libnccl.so.2*' -not -path '*site-packages*' 2>/dev/null | head -1)
[ -n "$old" ] && threads "C threads, the system's NCCL ($old) by preload, corrupt" LD_PRELOAD="$plugin:$old" GV100_PROFILE="$tmp/corrupt.yaml"
exit 0
