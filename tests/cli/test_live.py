"""The command, the plugin and a NCCL host together: what explain says is what a job under
`gv100 run` gets, and the closing line says it."""

import json
import os
import subprocess

from gv_cli import BIN, check, check_in, environment, finish, gv100_json

GROUPS = ["0,5", "0-5", "0-7", "0-9", "0-10", "0-4"]


def host(*args, env=None):
    command = [os.path.join(BIN, "gv100"), "run", "--nccl", "2.28.9", "--"]
    command += [os.path.join(BIN, "gv-nccl-host"), *args, "--json"]
    for gpus in GROUPS:
        command += ["--comm", gpus]
    done = subprocess.run(
        command, env=env or environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=240,
    )  # fmt: skip
    check(f"{args} status", done.returncode, 0)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def on_shm(edges):
    return sum(edge["transport"] == "SHM" for edge in edges)


explained = gv100_json(
    "explain", "--profile", "4028", *[word for gpus in GROUPS for word in ("--gpus", gpus)]
)
for mode in ("threads", "processes"):
    comms, said = host("--mode", mode)
    for gpus, comm, decision in zip(GROUPS, comms, explained):
        what = f"{mode} {gpus}"
        check(f"{what} edges on SHM", on_shm(comm["edges"]), on_shm(decision["ring"]["edges"]))
        check(f"{what} file", comm["topology_file"], decision["transport"] != "default")
        line = f"GPUs {gpus} {decision['transport']}"
        check_in(f"{what} is in the closing line", line, said)
    check(f"{mode} communicators", len(comms), len(GROUPS))
    check(f"{mode} one closing line", said.count("\n"), 1)

comms, said = host("--mode", "threads", env=environment(GV100_DISABLE="1"))
check("disabled: no file", [comm["topology_file"] for comm in comms], [False] * len(GROUPS))
check("disabled: said", said, "gv100: switched off by GV100_DISABLE=1\n")
finish()
