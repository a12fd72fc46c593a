"""What the tests of `gv100 calibrate` share: running it on the virtual reference machine, and what it
must find there."""

import csv
import json
import os
import subprocess
import tempfile

from gv_cli import BIN, SOURCE, check, environment, gv100, gv100_json

FOLDER = tempfile.TemporaryDirectory(prefix="gv-calibrate-")
PUBLISHED = json.loads(
    subprocess.run(
        [os.path.join(BIN, "gv100"), "show", "--profile", "4028", "--json"],
        env=environment(), stdout=subprocess.PIPE, check=True,
    ).stdout
)
# default and P2P busbw of each published group; None: there is no such variant. Of the six-GPU
# group's default runs the repeated ones count (the publication's own reading).
GROUPS = {
    (0, 1): (11.40, None), (0, 5): (6.99, 7.78), (7, 9): (73.31, None), (0, 10): (6.90, None),
    tuple(range(5)): (11.17, None), tuple(range(6)): (6.89, 7.94),
    tuple(range(10)): (6.87, 7.87), tuple(range(11)): (7.61, 7.54),
}
OWN = "hbm,host,p2p,ring"
DECIDED = ["0,5", "0-5", "0-9", "0-10", "0,1", "7,9", "0,10", "0-4", "0-6", "0-7", "0-8", "5-9", "0-4,10"]


def path_of(name):
    return os.path.join(FOLDER.name, name)


def near(what, got, wanted, by=0.02):
    if got is None or abs(got / wanted - 1) > by:
        check(what, got, f"{wanted} within {by:.0%}")


def faults(name, text):
    path = path_of(name + ".faults.yaml")
    with open(path, "w") as out:
        out.write(text)
    return environment(GV_VIRTUAL_FAULTS=path)


def calibrate(name, *args, env=None, machine="4028"):
    """Without --only: all but NCCL, for which our own ring stands in; test_nccl_groups has that."""
    out = path_of(name + ".yaml")
    if "--only" not in args:
        args = ("--only", OWN, *args)
    done = gv100("calibrate", "--virtual", machine, "-o", out, *args, env=env, timeout=280)
    return done, out


def profile_of(name, *args, env=None):
    done, out = calibrate(name, *args, env=env)
    check(f"{name}: status", (done.returncode, done.stdout.splitlines()[-1:] == []), (0, False))
    return gv100_json("show", "--profile", out), out, done


def pair(profile, a, b):
    (found,) = [p for p in profile["paths"] if p["from"] == [a] and p["to"] == [b]]
    return found


def median(figure):
    return figure and figure["median"]


def decisions(profile):
    answers = {}
    for gpus in DECIDED:
        a = gv100_json("explain", "--profile", profile, "--gpus", gpus)
        answers[gpus] = (a["transport"], [e["kind"] for e in a["edits"]], a["evidence"])
    return answers


def check_memory(profile):
    for entry in PUBLISHED["memory"]:
        for gpu in entry["gpus"]:
            (found,) = [m for m in profile["memory"] if m["gpus"] == [gpu]]
            near(f"copy of GPU {gpu}", median(found["copy_gbs"]), median(entry["copy_gbs"]))
            near(f"theory of GPU {gpu}", found["theoretical_gbs"], entry["theoretical_gbs"])


def check_pairs(profile):
    published = {}
    with open(os.path.join(SOURCE, "tests/cli/expected/4028-paths.csv")) as rows:
        for row in csv.DictReader(rows):
            published[row["path"]] = row
    for a in range(11):
        for b in range(11):
            if a == b:
                continue
            p = pair(profile, a, b)
            kind = "NV4" if {a, b} == {7, 9} else "SYS" if 10 in (a, b) else "PIX" if (a < 5) == (b < 5) else "PHB"
            check(f"{a}>{b} class", p["nccl_class"], "NVL" if kind == "NV4" else kind)
            if kind == "SYS":
                check(f"{a}>{b} refused", p["p2p"], "refused")
                figures = [p[k] for k in ("write_gbs", "read_gbs", "both_ways_gbs", "latency_us")]
                check(f"{a}>{b} has no P2P figure", figures, [None] * 4)
                check(f"{a}>{b} has the host's", p["host_path_gbs"] is not None, True)
                continue
            check(f"{a}>{b} verified", (p["p2p"], p["host_path_gbs"]), ("verified", None))
            for figure, column in (("write_gbs", "write_gbs"), ("both_ways_gbs", "both_ways_gbs"), ("latency_us", "latency_us")):
                low, high = (float(published[kind][f"{column}_{end}"]) for end in ("min", "max"))
                got, slack = median(p[figure]), 0 if kind == "PHB" else 0.02
                if not low * (1 - slack) <= got <= high * (1 + slack):
                    check(f"{a}>{b} {figure}", got, f"{low} to {high}")


def check_groups(profile):
    got = {tuple(g["gpus"]): g for g in profile["groups"] if not g["loaded"]}
    beside = [tuple(g["gpus"]) for g in profile["groups"] if g["loaded"]]
    check("beside another group", beside, [(0, 5), tuple(range(6))])
    check("the groups are the published ones", sorted(got), sorted(GROUPS))
    for gpus, (default, p2p) in GROUPS.items():
        variants = {v["edit"]: median(v["busbw_gbs"]) for v in got[gpus]["variants"]}
        near(f"{gpus} default", variants["none"], default)
        check(f"{gpus} variants", set(variants), {"none", "p2p-level"} if p2p else {"none"})
        if p2p:
            near(f"{gpus} P2P", variants["p2p-level"], p2p)
    for group in PUBLISHED["groups"]:
        if group["ring"]:
            check(f"ring of {group['gpus']}", got[tuple(group["gpus"])]["ring"], group["ring"])
        check(f"edges of {group['gpus']}", got[tuple(group["gpus"])]["shm_edges"], group["shm_edges"])
