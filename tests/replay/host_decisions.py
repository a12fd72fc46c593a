"""What the real plugin decides on the reference machine, driven as each NCCL release drives it: the
table, and what holds for every release. The tests beside it name the releases."""
import itertools

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


def compare(release, comms, name, own):
    for comm in comms:
        want = ALL[comm["gpu_list"]]
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
ONE_BY_ONE = ("2.28.9", "2.27.7")


def check_release(release):
    """All of the table alone (an all-to-all then has the peer mappings for itself), together and alive
    side by side, and eight made at the same time; threads and processes."""
    own = untouched([gpus for gpus, _ in DECISIONS], release)
    together = list(itertools.chain(*(("--comm", gpus) for gpus, _ in DECISIONS)))
    eight = list(itertools.chain(*(("--comm", gpus) for gpus in EIGHT)))
    for mode in ("threads", "processes"):
        for gpus in ALL if release in ONE_BY_ONE else ("0-5", "0-9"):
            compare(release, host("--release", release, "--mode", mode, "--comm", gpus, "--alltoall",
                                  status=0), f"{mode} alone", own)
        compare(release, host("--release", release, "--mode", mode, *together, status=0),
                f"{mode} together", own)
        compare(release, host("--release", release, "--mode", mode, "--concurrent", *eight, status=0),
                f"{mode} concurrent", own)
