"""All ways to make a communicator: each gets its own plan or the default, never another's."""
from gvhost import *

P6, S6 = "PPPPPP", "PPPPSS"
P10 = "P" * 10
MODES = ("threads", "processes")
RELEASES = ("2.28.9", "2.32.3", "2.19.3", "2.23.4", "2.27.7")

# arguments, oldest release, modes: transports of each communicator in their order
CASES = [
    # plain children
    (["--comm", "0-10", "--split", "0:0-5/6-9"], "2.19", MODES, ["PPPPSPPPPSS", P6, "PPPP"]),
    (["--comm", "0-10", "--split", "0:0-9"], "2.19", MODES, ["PPPPSPPPPSS", P10]),
    # children of a child, and two splits of one parent with the same color
    (["--comm", "0-10", "--split", "0:0-9", "--split", "1:0-5"], "2.19", MODES,
     ["PPPPSPPPPSS", P10, P6]),
    (["--comm", "0-9", "--split", "0:0-5", "--split", "0:0-5", "--split", "0:0,5"], "2.19", MODES,
     [P10, P6, P6, "PP"]),
    # children that share their parent's resources get the default from 2.28.7 on
    (["--comm", "0-10", "--split", "0:0-5/6-10", "--share"], "2.28.9", MODES,
     ["PPPPSPPPPSS", S6, "PPPSS"]),
    # shrink: 2.28.9 repeats the id
    (["--comm", "0-10", "--shrink", "0:10", "--shrink", "0:6-10"], "2.27.7", MODES,
     ["PPPPSPPPPSS", P10, P6]),
    # the other calls
    (["--api", "config", "--comm", "0-5", "--comm", "0-9"], "2.19", MODES, [P6, P10]),
    (["--api", "scalable", "--comm", "0-5", "--comm", "0-9"], "2.23.4", MODES, [P6, P10]),
    (["--api", "all", "--comm", "0-5", "--comm", "0-9"], "2.19", MODES[:1], [P6, P10]),
    (["--nonblocking", "--comm", "0-5", "--split", "0:0,5"], "2.19", MODES, [P6, "PP"]),
    # one rank comes late
    (["--late", "3:700", "--comm", "0-5", "--comm", "0-9"], "2.19", MODES, [P6, P10]),
    # several from several threads, the same GPUs in two of them
    (["--concurrent", "--comm", "0-5", "--comm", "0-5", "--comm", "0-9", "--comm", "0-10"], "2.19",
     MODES, [P6, P6, P10, "PPPPSPPPPSS"]),
    (["--concurrent", "--late", "2:300", "--comm", "0-5", "--comm", "0-9", "--split", "1:0-5"],
     "2.19", MODES, [P6, P10, P6]),
    # several at once over the same GPUs, all ranks threads that NCCL makes: their plans are one
    (["--api", "all", "--concurrent", "--comm", "0-5", "--comm", "0-5", "--comm", "0-5"], "2.19", MODES[:1],
     [P6, P6, P6]),
    (["--api", "all", "--concurrent", "--comm", "0-9", "--comm", "10,0-9"], "2.28.9", MODES[:1],
     [P10, "PPPPSPPPPSS"]),
    # fewer GPUs visible than there are, and in another order
    (["--visible", "0-5", "--comm", "0-5"], "2.19", MODES, [P6]),
    (["--visible", "5,0,9", "--comm", "0,5"], "2.19", MODES, ["PP"]),
    # ranks in another order than the GPUs
    (["--comm", "5,4,3,2,1,0"], "2.19", MODES, [P6]),
]


def as_number(release):
    return [int(part) for part in release.split(".")]


for args, since, modes, want in CASES:
    for release in RELEASES:
        if as_number(release) < as_number(since):
            continue
        for mode in modes:
            comms = host("--release", release, "--mode", mode, *args, status=0)
            where = f"{release} {mode} {' '.join(args)}"
            check(f"{where}: errors", [c["error"] for c in comms], [None] * len(want))
            check(f"{where}: all ranks alike", [c["consistent"] for c in comms], [True] * len(want))
            check(f"{where}: transports",
                  [sorted(transports(c)) for c in comms], [sorted(w) for w in want])
            check(f"{where}: warnings", [lines(c, "WARN", OTHER_NCCL) for c in comms],
                  [[]] * len(want))

# In the preload such a child is seen and left to NCCL, which is said; its parent keeps its plan.
for release, given in (("2.28.9", ["--given", "preload"]), ("2.27.7", [])):
    for mode in MODES:
        comms = host("--release", release, "--mode", mode, *given, "--comm", "0-9", "--split", "0:0-5", "--share", status=0)
        where = f"{release} {mode} preload, sharing child"
        check(f"{where}: transports", [sorted(transports(c)) for c in comms], [sorted(P10), sorted(S6)])
        check(f"{where}: why", any("shares its parent's resources" in l for l in comms[1]["log"]), True)

# Over different GPUs nothing tells up to 2.28.6 which one a thread of NCCL's works for: the right plan
# where one was made before the other came, else the default for both, with its true cause.
for release in ("2.19.3", "2.23.4", "2.27.7", "2.28.3"):
    for _ in range(4):
        comms = host("--release", release, "--api", "all", "--concurrent", "--comm", "0-5", "--comm", "0-9", status=0)
        where = f"{release} InitAll at once over different GPUs"
        check(f"{where}: all ranks alike", [c["consistent"] for c in comms], [True, True])
        got = [transports(c) for c in comms]
        default = ["PPPPSS", "PPPPSPPPPS"]
        for i, plan in enumerate((P6, P10)):
            check(f"{where}: {got}", got[i] in (plan, default[i]), True)
        warned = {line for c in comms for line in lines(c, "WARN", OTHER_NCCL)}
        check(f"{where}: warned", len(warned), int(got != [P6, P10]))
        check(f"{where}: cause and next step", all("over different GPUs" in w and "one after the other" in w
                                                   for w in warned), True)

done()
