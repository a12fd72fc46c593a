"""Whole outputs as a person sees them, against the files in expected/. A wanted change is taken over
with GV_UPDATE=1; the difference is then read in the commit."""

import os

from gv_cli import BIN, SOURCE, check, environment, finish, gv100

GROUPS = "0,5 0-5 0-6 0-7 0-8 0-9 0-10 0,1 7,9 0,10 0-4 5-9 0-4,10".split()
CASES = {
    "explain-help": ["explain", "--help"],
    "explain-0-5": ["explain", "--profile", "4028", "--gpus", "0-5"],
    "explain-0-10": ["explain", "--profile", "4028", "--gpus", "0-10"],
    "explain-groups": ["explain", "--profile", "4028"] + [w for g in GROUPS for w in ("-g", g)],
    "explain-0-5.json": ["explain", "--profile", "4028", "--gpus", "0-5", "--json"],
    "explain-0,5.json": ["explain", "--profile", "4028", "--gpus", "0,5", "--json"],
    "show": ["show", "--profile", "4028"],
    "show.json": ["show", "--profile", "4028", "--json"],
    "env-2.27.3": ["env", "--nccl", "2.27.3"],
    "env-2.28.9": ["env", "--nccl", "2.28.9"],
    "env-2.28.9.json": ["env", "--nccl", "2.28.9", "--json"],
    "env-slurm": ["env", "--nccl", "2.28.9", "--slurm"],
    "env-k8s": ["env", "--nccl", "2.28.9", "--k8s"],
}
PLUGIN = os.path.realpath("/etc/hostname" if os.path.exists("/etc/hostname") else __file__)


def plain(text):
    """Places differ from machine to machine."""
    return text.replace(SOURCE, "@SOURCE@").replace(PLUGIN, "@PLUGIN@").replace(BIN, "@BIN@")


for name, args in CASES.items():
    done = gv100(*args, env=environment(GV100_PLUGIN=PLUGIN))
    got = plain(done.stdout)
    check(f"{name} status and errors", (done.returncode, done.stderr), (0, ""))
    path = os.path.join(SOURCE, "tests/cli/expected", name)
    if os.environ.get("GV_UPDATE"):
        with open(path, "w", encoding="utf-8") as f:
            f.write(got)
    with open(path, encoding="utf-8") as f:
        wanted = f.read()
    check(name, got, wanted)
    if not name.endswith(".json"):
        check(f"{name} fits 100 columns", [line for line in got.splitlines() if len(line) > 100], [])
finish()
