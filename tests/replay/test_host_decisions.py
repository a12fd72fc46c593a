"""What the real plugin decides on the reference machine, driven as each NCCL release drives it."""
import itertools
import os

from gvhost import *

# GPUs: transport of the whole ring ("default": NCCL's own, and no file is handed over)
DECISIONS = [
    ("0,5", "p2p"),
    ("0-5", "p2p"),
    ("0-9", "p2p"),
    ("0-6", "p2p"),
    ("0-7", "p2p"),
    ("0-8", "p2p"),
    ("0-10", "default"),
    ("0,1", "default"),
    ("7,9", "default"),
    ("0,10", "default"),
    ("0-4", "default"),
    ("5-9", "default"),
    ("0-4,10", "default"),
]


def untouched(gpus, release):
    """The ring that NCCL makes by itself."""
    comms = host("--no-plugin", "--release", release, *itertools.chain(*(("--comm", g) for g in gpus)))
    return {c["gpu_list"]: (c["ring"], transports(c), c["channels"]) for c in comms}


def compare(release, comms, name, table):
    for comm in comms:
        want = table[comm["gpu_list"]]
        where = f"{release} {name} {comm['gpu_list']}"
        check(f"{where}: error", comm["error"], None)
        check(f"{where}: file", comm["topology_file"], want == "p2p")
        check(f"{where}: all ranks alike", comm["consistent"], True)
        check(f"{where}: all-to-all", comm.get("alltoall", "ok"), "ok")
        check(f"{where}: protocol", comm["protocol"], "SIMPLE")
        check(f"{where}: warnings", lines(comm, "WARN", OTHER_NCCL), [])
        if want == "p2p":
            check(f"{where}: transports", kind(comm), "p2p")
        else:
            check(f"{where}: as without the plugin",
                  (comm["ring"], transports(comm), comm["channels"]), own[comm["gpu_list"]])


def normal(gpus):
    return "0-1" if gpus == "0,1" else gpus


ALL = {normal(gpus): want for gpus, want in DECISIONS}
EIGHT = ["0,5", "0-5", "0-9", "0-10", "0-4", "5-9", "0-6", "0,1"]

for release in NEW + OLD:
    own = untouched([gpus for gpus, _ in DECISIONS], release)
    for mode in ("threads", "processes"):
        # one communicator a job: an all-to-all has the peer mappings for itself
        for gpus in ("0-5", "0-9") if release in OLD[1:] else ALL:
            comms = host("--release", release, "--mode", mode, "--comm", gpus, "--alltoall", status=0)
            compare(release, comms, f"{mode} alone", ALL)
        # all of them in one job, alive together
        together = list(itertools.chain(*(("--comm", gpus) for gpus, _ in DECISIONS)))
        compare(release, host("--release", release, "--mode", mode, *together, status=0),
                f"{mode} together", ALL)
        eight = list(itertools.chain(*(("--comm", gpus) for gpus in EIGHT)))
        compare(release, host("--release", release, "--mode", mode, "--concurrent", *eight, status=0),
                f"{mode} concurrent", ALL)

done()
