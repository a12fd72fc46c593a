"""Runs gv-nccl-host and compares what it prints with tables."""
import json
import os
import subprocess
import sys

BIN = os.environ["GV_BIN_DIR"]
LIB = os.environ["GV_LIB_DIR"]
RECORDER = os.path.join(LIB, "host", "libgv-recorder.so")
PLUGIN = os.path.join(LIB, "libnccl-tuner-gv100.so")
OLD = ["2.19.3", "2.20.5", "2.21.5", "2.22.3", "2.23.4", "2.24.3", "2.26.5", "2.27.3", "2.27.7",
       "2.28.3"]
NEW = ["2.28.9", "2.30.7", "2.32.3"]

SLOW = int(os.environ.get("GV_SLOW", "1"))  # how much longer a sanitizer makes everything

failed = []


def host(*args, env=None, status=None):
    """The list of communicators. `status`: the exit status that is expected."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "GVREC_", "GV100_"))}
    clean["GV100_PROFILE_DIR"] = os.environ.get("GV100_PROFILE_DIR", "")
    clean.update(env or {})
    run = subprocess.run([os.path.join(BIN, "gv-nccl-host"), "--json", *map(str, args)], env=clean,
                         capture_output=True, text=True, timeout=120 * SLOW)
    if status is not None:
        check(f"{' '.join(map(str, args))}: exit status ({run.stderr.strip()})", run.returncode,
              status)
    return [json.loads(line) for line in run.stdout.splitlines()]


def check(what, got, want):
    if got != want:
        failed.append(what)
        print(f"FAILED {what}\n    got    {got}\n    wanted {want}")


def transports(comm):
    """'PPS': one letter for each edge of the ring, in its order."""
    return "".join(edge["transport"][0] for edge in comm["edges"])


def kind(comm):
    """'p2p', 'shm' or 'mixed', as NCCL's edges are."""
    letters = set(transports(comm))
    return {frozenset("P"): "p2p", frozenset("S"): "shm", frozenset(): "none"}.get(
        frozenset(letters), "mixed")


def trace(comm, rank=0):
    """What one rank's communicator asked and called, in order."""
    return [line["what"] for line in comm["trace"] if line["rank"] in (rank, -1)]


def lines(comm, level, *but):
    """What was logged at that level, each text once, without those that hold one of `but`."""
    return sorted({l for l in comm["log"] if l.startswith(level) and not any(b in l for b in but)})


# A profile of another NCCL release: its transports are used, and that is said once.
OTHER_NCCL = "the profile was measured with NCCL"


def done():
    print(f"{len(failed)} failed")
    sys.exit(1 if failed else 0)
