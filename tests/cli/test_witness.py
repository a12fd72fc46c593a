"""nccl-tests as a witness, by programs that print as nccl-tests do (testbench/perf): every operation, the layouts of its
releases, both halves of its tables, its text and its JSON."""

import json
import os
import subprocess
import tempfile

from gv_cli import BIN, SOURCE, check, check_in, environment, finish, gv100, gv100_json

FOLDER = tempfile.TemporaryDirectory(prefix="gv-witness-")
PERF, VIRTUAL = (os.path.realpath(os.path.join(BIN, "..", part)) for part in ("perf", "lib/virtual"))
PROGRAMS = {"AllReduce": "all_reduce_perf", "AllGather": "all_gather_perf", "ReduceScatter": "reduce_scatter_perf",
            "Broadcast": "broadcast_perf", "Reduce": "reduce_perf", "AllToAll": "alltoall_perf"}
LAYOUTS = ("2.10", "2.13", "2.19")  # a column "error", a column "#wrong", a head with versions


def near(what, got, wanted, by):
    if got is None or abs(got / wanted - 1) > by:
        check(what, got, f"{wanted} within {by:.1%}")


def beside_our_own(operation, layout, *more):
    """The witness runs under the same plans, and says what we say."""
    what = f"{operation}, {layout}, {more}"
    env = environment(GV100_ASSUME_VERIFIED="1", GV_PERF_LAYOUT=layout, TMPDIR=FOLDER.name)
    done = gv100("compare", "--virtual", "4028", "--profile", "4028", "--gpus", "0-5", "-o", operation, "-b", "1M", "-e",
                 "16M", "--repeats", "3", "--in-place", "--with", os.path.join(PERF, PROGRAMS[operation]), "--json", *more,
                 env=env)
    check(f"{what}: status", (done.returncode, done.stderr), (0, ""))
    run = json.loads(done.stdout)
    ours = {(r["variant"], r["operation"], r["size"], r["in_place"]): r["bus_bw"] for r in run["results"]}
    theirs = {(w["variant"], w["operation"], w["size"], w["in_place"]): w["bus_bw"] for w in run["witness"]["results"]}
    check(f"{what}: the same cases", sorted(theirs), sorted(ours))
    for case, busbw in theirs.items():
        near(f"{what}, {case}", busbw, ours[case], 0.01)
    check(f"{what}: both variants", {case[0] for case in theirs}, {"default", "tuned"})
    (big,) = [s for s in {case[2] for case in theirs} if s > 15 << 20]
    gain = theirs["tuned", operation, big, False] / theirs["default", operation, big, False] - 1
    check(f"{what}: the plan is the witness's too", gain > 0.03, True)


def output(operation, layout, *more, status=0):
    env = environment(LD_LIBRARY_PATH=VIRTUAL, GV_PERF_LAYOUT=layout,
                      GV_VIRTUAL_MACHINE=os.path.join(SOURCE, "testbench", "machines", "4028", "machine.yaml"))
    done = subprocess.run([os.path.join(PERF, PROGRAMS[operation]), "-b", "1M", "-e", "16M", "-f", "4", "-g", "3", "-w", "1",
                           "-n", "2", *more], env=env, stdout=subprocess.PIPE, text=True, check=False, timeout=120)
    check(f"{operation} {layout} {more}: status", done.returncode, status)
    return done.stdout


def samples(path, *args):
    found = gv100_json("import", path, *args)
    (source,) = found["sources"]
    return {(s["op"], s["bytes"]): s["busbw_gbs"] for s in source["samples"]}


def text_and_json(operation):
    """Both outputs of one run give the same figures; only digits differ."""
    table, whole = (os.path.join(FOLDER.name, f"{operation}.{kind}") for kind in ("txt", "json"))
    with open(table, "w") as out:
        out.write(output(operation, "2.19", "-J", whole))
    for half in ([], ["--in-place"] if operation != "AllToAll" else []):
        of_text, of_json = samples(table, *half), samples(whole, "--gpus", "0,1,2", *half)
        check(f"{operation} {half}: cases", sorted(of_json), sorted(of_text))
        check(f"{operation} {half}: sizes", len(of_text), 3)
        for case, busbw in of_json.items():
            check(f"{operation} {half} {case}", abs(of_text[case] - busbw) <= 0.00501, True)


def every_layout():
    for operation in PROGRAMS:
        figures = []
        for layout in LAYOUTS:
            path = os.path.join(FOLDER.name, f"{operation}-{layout}.txt")
            with open(path, "w") as out:
                out.write(output(operation, layout))
            figures.append(samples(path, "--op", operation))
        check(f"{operation}: layouts agree", figures[1:], figures[:-1])


def refused():
    """What may not be taken over: results that nobody checked, a run that failed."""
    path = os.path.join(FOLDER.name, "unchecked.txt")
    with open(path, "w") as out:
        out.write(output("AllReduce", "2.19", "-c", "0"))
    done = gv100("import", path)
    check("not checked: status", done.returncode, 3)
    check_in("not checked: why", "without checking its results (-c 0)", done.stderr)
    done = gv100("compare", "--virtual", "4028", "--gpus", "0,5", "-o", "AllReduce", "-b", "1M", "-e", "16M", "-f", "2.5",
                 "--with", os.path.join(PERF, "all_reduce_perf"))
    check("a factor that nccl-tests has not: status", done.returncode, 3)
    check_in("a factor that nccl-tests has not: why", "-f: nccl-tests takes no other", done.stderr)


for name in PROGRAMS:
    beside_our_own(name, "2.19")
    text_and_json(name)
for name in LAYOUTS[:2]:
    beside_our_own("AllReduce", name, "--type", "half", "--redop", "max")
    beside_our_own("AllGather", name)
every_layout()
refused()
finish()
