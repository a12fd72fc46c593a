#!/bin/bash
# gv-topology: prints what it was asked for, refuses with cause.
set -u
tool="$GV_BIN_DIR/gv-topology"
data="$GV_SOURCE_DIR/tests/replay/data/topology"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# check NAME STATUS PATTERN ARGUMENTS...: exit status, and a line of the output that matches.
check() {
    local name=$1 status=$2 pattern=$3
    shift 3
    "$tool" "$@" >"$work/out" 2>&1
    local rc=$?
    if [ $rc -ne "$status" ] || ! grep -qE -- "$pattern" "$work/out"; then
        echo "FAILED $name: status $rc"
        cat "$work/out"
        failed=1
    fi
}

sysfs=$work/sys
mkdir -p "$sysfs/bus/pci/devices"
flat=$data/flat-virtual.xml
check 'a file as it is' 0 'busid="0004:00:00.0" class="0x030200"' --file "$flat"
check 'lend by number' 0 'target="0003:00:00.0" count="3" tclass="0x030200"' --file "$flat" --lend 0-2:3
check 'lend by bus id' 0 'target="0001:00:00.0" count="2"' --file "$flat" --sm 86 --lend 0001:00:00.0-0002:00:00.0
check 'bridge' 0 'busid="fffe:00:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="32"' \
    --file "$flat" --sysfs "$sysfs" --bridge 0-1
check 'through a memfd' 0 '</system>' --file "$flat" --memfd
check 'bridge over two CPUs' 1 'two CPU nodes' --file "$flat" --bridge 1,2
check 'no such GPU' 1 "'9' is no GPU of this machine" --file "$flat" --lend 0-9
check 'no such GPU in a list' 1 'no GPU 7' --file "$flat" --bridge 0,7
check 'not a pair' 1 'two GPUs are expected' --file "$flat" --separate 3
check 'cut file' 1 'numa-minus-1-cut.xml:6:.*it is cut' --file "$data/numa-minus-1-cut.xml"
check 'empty machine' 1 'no NVIDIA GPU' --sysfs "$sysfs"
exit $failed
