"""One node, proven: by the launcher's variables, by nRanks (preload), by an earlier communicator; and
a network plugin of the user's, which the hook may only replace where no network is needed."""
import os
import tempfile

from gvhost import *

UNPROVEN = "GV100_SINGLE_NODE=1"
RING = {"p2p": "PPPPPP", "default": "PPPPSS"}

# launcher, nodes: decision from 2.28.7 on, decision by preload (nRanks is known there)
PROOFS = [
    ("torchrun", 1, "p2p", "p2p"),
    ("srun", 1, "p2p", "p2p"),
    ("mpirun", 1, "p2p", "p2p"),
    ("spawn", 1, "default", "p2p"),
    ("plain", 1, "default", "p2p"),
    ("torchrun", 2, "default", "default"),
    ("srun", 2, "default", "default"),
    ("mpirun", 2, "default", "default"),
    ("spawn", 2, "default", "default"),
    ("plain", 2, "default", "default"),
]
for launcher, nodes, new, old in PROOFS:
    for release, want in (("2.28.9", new), ("2.30.7", new), ("2.23.4", old), ("2.27.7", old)):
        for mode in ("threads", "processes"):
            comm = host("--release", release, "--mode", mode, "--launcher", launcher, "--nodes", nodes,
                        "--comm", "0-5", status=0)[0]
            where = f"{release} {mode} {launcher} {nodes} nodes"
            check(f"{where}: transports", transports(comm), RING[want])
            if nodes == 1 and want == "default":
                check(f"{where}: says what would prove it",
                      any(UNPROVEN in line for line in comm["log"]), True)

# An earlier communicator of the process proved it, and a word of the user's does.
for mode in ("threads", "processes"):
    comms = host("--mode", mode, "--launcher", "plain", "--comm", "0-10", "--comm", "0-5", status=0)
    check(f"{mode}: after an earlier communicator", kind(comms[1]), "p2p")
    # two of six processes know it: not enough, and all decide alike
    comms = host("--mode", mode, "--launcher", "plain", "--comm", "0,1", "--comm", "0-5", status=0)
    want = "PPPPPP" if mode == "threads" else "PPPPSS"
    check(f"{mode}: an earlier one of two ranks", (transports(comms[1]), comms[1]["consistent"]),
          (want, True))
    comm = host("--mode", mode, "--launcher", "plain", "--comm", "0-5", env={"GV100_SINGLE_NODE": "1"},
                status=0)[0]
    check(f"{mode}: GV100_SINGLE_NODE=1", kind(comm), "p2p")

# The word was wrong: the job goes on, one line says so, and no more plans are made.
comms = host("--launcher", "plain", "--nodes", 2, "--comm", "0-5", "--comm", "0-9",
             env={"GV100_SINGLE_NODE": "1"}, status=0)
check("wrong word: second communicator", comms[1]["topology_file"], False)
check("wrong word: one warning", len([l for c in comms for l in lines(c, "WARN", OTHER_NCCL)]), 1)

# A network plugin of the user's, named or under NCCL's default name.
FOLDER = tempfile.mkdtemp()
os.symlink(RECORDER, os.path.join(FOLDER, "libnccl-net.so"))
NAMED = {"NCCL_NET_PLUGIN": RECORDER, "GVREC_NET_PROPERTIES": "0"}
BY_DEFAULT = {"LD_LIBRARY_PATH": FOLDER, "GVREC_NET_PROPERTIES": "0"}
NETS = [
    # environment, launcher: network in use and transports from 2.28.7 on, by preload
    (NAMED, "plain", ("recorder", "default"), ("recorder", "p2p")),
    (NAMED, "torchrun", ("Socket", "p2p"), ("recorder", "p2p")),
    (BY_DEFAULT, "plain", ("recorder", "default"), ("recorder", "p2p")),
    (BY_DEFAULT, "torchrun", ("Socket", "p2p"), ("recorder", "p2p")),
    ({**NAMED, "NCCL_NET": "recorder"}, "torchrun", ("recorder", "default"), ("recorder", "p2p")),
]
for env, launcher, new, old in NETS:
    for release, (net, want) in (("2.28.9", new), ("2.30.7", new), ("2.23.4", old)):
        comm = host("--release", release, "--launcher", launcher, "--comm", "0-5", env=env, status=0)[0]
        where = f"{release} {launcher} {sorted(env)}"
        check(f"{where}: network", {l.split()[-1] for l in comm["log"] if "Using network" in l}, {net})
        check(f"{where}: transports", transports(comm), RING[want])

done()
