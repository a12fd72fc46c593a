"""gv100 compare on the virtual reference machine: the published figures found by measuring, saved runs,
plans that cannot be followed, workers that die or hang."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from gv_cli import BIN, SLOW, SOURCE, check, check_in, environment, finish, gv100

FOLDER = tempfile.TemporaryDirectory(prefix="gv-compare-")
BEFORE = set(os.listdir("/dev/shm"))
TRUSTED = environment(GV100_ASSUME_VERIFIED="1", TMPDIR=FOLDER.name)
# Published default busbw, and with P2P across the host bridge where the policy turns it on.
PUBLISHED = {
    "0-1": (11.40, None), "0,5": (6.99, 7.78), "7,9": (73.31, None), "0,10": (6.90, None),
    "0-4": (11.17, None), "0-5": (6.89, 7.94), "0-9": (6.87, 7.87), "0-10": (7.61, None),
}


def compare(*args, env=TRUSTED, **how):
    return gv100("compare", *args, env=env, **how)


def run(*args, **how):
    done = compare("--virtual", "4028", *args, "--json", **how)
    check(f"{args}: status and stderr", (done.returncode, done.stderr), (0, ""))
    return json.loads(done.stdout)


def near(what, got, wanted, by):
    if got is None or abs(got / wanted - 1) > by:
        check(what, got, f"{wanted} within {by:.0%}")


def transports(result, variant):
    (found,) = [v for v in result["variants"] if v["name"] == variant]
    return {(e["from"], e["to"]): e["transport"].split("/")[0] for e in found["ring"]["edges"]}


def published():
    for gpus, (default, tuned) in PUBLISHED.items():
        result = run("--profile", "4028", "--gpus", gpus, "-o", "AllReduce", "-b", "1G", "-e", "1G", "--repeats", "3")
        by_name = {r["variant"]: r for r in result["results"]}
        (row,) = result["comparisons"]
        near(f"{gpus}: default", by_name["default"]["bus_bw"], default, 0.03)
        near(f"{gpus}: tuned", by_name["tuned"]["bus_bw"], tuned or default, 0.03)
        check(f"{gpus}: verdict", row["verdict"], "gain" if tuned else "tie")
        check(f"{gpus}: wrong", [r["nwrong"] for r in result["results"]], [0, 0])
        shm = {t for t in transports(result, "tuned").values()}
        check(f"{gpus}: tuned transports", "SHM" in shm, gpus in ("0,10", "0-10"))


def edges_before_and_after():
    result = run("--profile", "4028", "--gpus", "0-5", "-b", "1M", "-e", "1M", "--repeats", "3")
    check("0-5 default on SHM", [e for e, t in transports(result, "default").items() if t == "SHM"], [(4, 5), (5, 0)])
    check("0-5 tuned on SHM", [e for e, t in transports(result, "tuned").items() if t == "SHM"], [])
    (default,) = [v for v in result["variants"] if v["name"] == "default"]
    slowest = default["ring"]["edges"][default["ring"]["slowest"]]
    check("0-5 slowest hop", (slowest["from"], slowest["to"], slowest["path"]), (4, 5, "PHB"))
    check("both operations", [r["operation"] for r in result["comparisons"]], ["AllReduce", "AllToAll"])


OPERATIONS = "AllReduce,AllGather,ReduceScatter,Broadcast,Reduce,AllToAll"


def targets_are_tried_first():
    """What cannot be written is said before minutes are spent on measuring, and not by losing what was measured."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkfifo(os.path.join(folder, "pipe"))
        for option in ("--save", "--html"):
            for target, words in (("", "is empty"), (folder, "this is a folder"), (f"{folder}/pipe", "this is a pipe"),
                                  ("/proc/none/x", "cannot be made")):
                # a profile that is not there would be the next complaint
                done = gv100("compare", "--virtual", "4028", "--profile", "./none.yaml", option, target)
                check(f"{option} {target}: status", (done.returncode, done.stdout), (3, ""))
                check_in(f"{option} {target}: words", words, done.stderr)
        check("nothing is left", os.listdir(folder), ["pipe"])


def names_of_variants():
    """Plans that begin alike stay apart, in what is printed and in what is saved."""
    plans = [f"algorithm=RING protocol=LL channels={n}" for n in (4, 8)]
    result = run("--gpus", "0,1", "-o", "AllReduce", "-b", "1M", "-e", "1M", "--repeats", "1",
                 *(word for plan in plans for word in ("--variant", plan)))
    check("plans are named whole", [v["name"] for v in result["variants"]][-2:], plans)
    for plan, words in ((plans[0], "is given twice"), ("default", "measured always")):
        done = gv100("compare", "--virtual", "4028", "--variant", plans[0], "--variant", plan)
        check(f"{words}: status", done.returncode, 2)
        check_in("which", words, done.stderr)


def results_are_checked():
    for how in ([], ["--threads"]):
        for kind in ("float", "half", "bfloat16", "int8", "uint64", "double"):
            for redop in ("sum", "max", "avg") if kind in ("float", "int8") else ("prod",):
                result = run("--gpus", "0,1,5", "--variant", "bridge", "-o", OPERATIONS, "-b", "70000", "-e", "70000",
                             "--type", kind, "--redop", redop, "--in-place", "--repeats", "1", *how)
                wrong = [(r["operation"], r["in_place"]) for r in result["results"] if r["nwrong"] or not r["times"]]
                check(f"{kind} {redop} {how}: wrong", wrong, [])
                check(f"{kind} {redop} {how}: cases", len(result["results"]), 3 * 11)


def threads_and_one_rank():
    args = ["--gpus", "0-3", "-o", OPERATIONS, "-b", "64K", "-e", "16M", "-f", "256", "--repeats", "1"]
    busbw = [[r["bus_bw"] for r in run(*args, *how)["results"]] for how in ([], ["--threads"])]
    check("threads and processes have one clock", busbw[0], busbw[1])
    alone = run("--gpus", "6", "-o", OPERATIONS, "-b", "1M", "-e", "1M", "--repeats", "1", "--in-place")
    check("one rank: right", [r["nwrong"] for r in alone["results"] if r["nwrong"] or not r["times"]], [])


def saved_runs():
    path = os.path.join(FOLDER.name, "run.json")
    args = ["--virtual", "4028", "--gpus", "0,5", "--profile", "4028", "-b", "64K", "-e", "64M", "--variant", "bridge"]
    live = compare(*args, "--save", path, "--json")
    check("live", live.returncode, 0)
    for form in ("--json", "--csv", None):
        again = compare(path, *([form] if form else []))
        check(f"{form}: status", (again.returncode, again.stderr), (0, ""))
        if form == "--json":
            same_but_loaded("the saved run's JSON is the live one's", again.stdout, live.stdout, path)
        if form == "--csv":
            rows = list(csv.DictReader(io.StringIO(again.stdout)))
            wanted = json.loads(live.stdout)["results"]
            check("csv rows", [(r["variant"], r["operation"], int(r["size"])) for r in rows],
                  [(r["variant"], r["operation"], r["size"]) for r in wanted])
            for got, want in zip(rows, wanted):
                near("csv bus_bw", float(got["bus_bw"]), want["bus_bw"], 0.001)
    printed = os.path.join(FOLDER.name, "printed.json")
    with open(printed, "w") as out:
        out.write(live.stdout)
    same_but_loaded("a printed run is as good as a kept one", compare(printed, "--json").stdout, live.stdout, printed)
    for text, why in (("{}", "gv100_compare is not 2"), ("[1,", "run2.json:1:"), ('{"gv100_compare": 2}', "gpus"),
                      (live.stdout.replace('"GV100_ASSUME_VERIFIED"', '"GV; rm"'),
                       "settings.environment")):
        bad = os.path.join(FOLDER.name, "run2.json")
        with open(bad, "w") as out:
            out.write(text)
        done = compare(bad)
        check(f"{text[:40]}: status", done.returncode, 3)
        check_in(f"{text[:40]}: cause", why, done.stderr)
    for args in (["--repeats", "3"], ["--virtual", "4028"], ["-b", "1M"], ["--threads"], ["--with", "x"]):
        done = compare(path, *args)
        check(f"{args} of a saved run: status", done.returncode, 2)
        check_in(f"{args} of a saved run: cause", "nothing is measured where saved runs are shown", done.stderr)


def same_but_loaded(what, again, live, path):
    again, live = json.loads(again), json.loads(live)
    check(f"{what}: where from", (again.pop("loaded"), live.pop("loaded")), (path, ""))
    check(what, again, live)


def measure_again():
    """The command that a run names makes the same run again: settings, plans, rings and decisions."""
    machine = os.path.join(FOLDER.name, "a machine.yaml")
    shutil.copy(os.path.join(SOURCE, "testbench", "machines", "4028", "machine.yaml"), machine)
    sizes = os.path.join(FOLDER.name, "its sizes.txt")
    with open(sizes, "w") as out:
        out.write("64K AllReduce 3\n")
    for args in (
        ["--gpus", "0,5", "-b", "70000", "-e", "1M", "-f", "2.5", "-o", "AllReduce,Broadcast", "--type", "half",
         "--redop", "max", "--in-place", "--iterations", "3", "--check", "1000", "--repeats", "4", "--timeout", "77.5",
         "--variant", "bridge", "--variant", "algorithm=RING protocol=LL", "--profile", "4028"],
        ["--gpus", "0-2", "-b", "64K", "-e", "64K", "--threads", "--repeats", "3", "--sizes", sizes, "--steps", "2",
         "--step-time", "0.5"],
        ["--gpus", "0-5", "-b", "1M", "-e", "1M", "--repeats", "3", "--profile", "4028"],
    ):
        env = environment(GV100_ASSUME_VERIFIED="1", TMPDIR=FOLDER.name, NCCL_ALGO="Ring", GV_HOST_RELEASE="2.23.4")
        first = compare("--virtual", machine, *args, "--json", env=env)
        check(f"{args}: status", (first.returncode, first.stderr), (0, ""))
        run_ = json.loads(first.stdout)
        command = run_["settings"]["command"].replace("gv100 compare", "gv100 compare --json", 1)
        bare = {k: v for k, v in env.items() if not k.startswith(("NCCL_", "GV"))}
        bare["PATH"] = BIN + ":" + bare["PATH"]
        again = subprocess.run(["sh", "-c", command], env=bare, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               timeout=120, check=False)
        check(f"{args}: again", (again.returncode, again.stderr), (0, ""))
        again = json.loads(again.stdout)
        for key in ("settings", "gpus", "nccl", "profile", "profile_hash", "variants", "host", "job", "min_gain"):
            check(f"{args}: {key} again", again[key], run_[key])
        check(f"{args}: cases again", [{k: r[k] for k in ("operation", "size", "type", "redop", "in_place", "nwrong")}
                                       for r in again["results"]],
              [{k: r[k] for k in ("operation", "size", "type", "redop", "in_place", "nwrong")} for r in run_["results"]])
        check(f"{args}: release", run_["nccl"]["version"], "2.23.4")


def changed(run_, **more):
    return {**json.loads(json.dumps(run_)), **more}


def two_runs():
    """Two saved runs against each other, and every way in which they may not belong together."""
    base = ["--gpus", "0,5", "--profile", "4028", "-o", "AllReduce", "--repeats", "3"]
    one, two = run(*base, "-b", "64K", "-e", "1M"), run(*base, "-b", "1M", "-e", "16M", "--variant", "bridge")
    one["results"] = [r for r in one["results"] if r["variant"] == "default"]
    one["variants"] = one["variants"][:1]

    def held(a, b, *args):
        paths = [os.path.join(FOLDER.name, n) for n in ("before.json", "after.json")]
        for path, content in zip(paths, (a, b)):
            with open(path, "w") as out:
                json.dump(content, out)
        return compare(*paths, *args)

    done = held(one, two, "--json")
    check("two runs: status", (done.returncode, done.stderr), (0, ""))
    result = json.loads(done.stdout)
    check("two runs: variants", [v["name"] for v in result["variants"]],
          ["before default", "after default", "after tuned", "after bridge"])
    check("two runs: base", result["base"], "before default")
    rows = {r["variant"]: r for r in result["comparisons"]}
    check("two runs: what both have", {r["size"] for r in result["results"]}, {1 << 20})
    check("two runs: verdicts", [rows[f"after {v}"]["verdict"] for v in ("default", "tuned", "bridge")],
          ["tie", "gain", "gain"])
    check_in("two runs: said", "were not measured in turn", result["notes"][0])
    check("two runs: cases left out are said", [n.split(" ", 1)[0] for n in result["notes"] if "left out" in n], ["1", "1"])
    check("two runs: where from", [(os.path.basename(o["file"]), o["kind"], o["command"]) for o in result["origins"]],
          [("before.json", "run", one["settings"]["command"]), ("after.json", "run", two["settings"]["command"])])
    kept = os.path.join(FOLDER.name, "both.json")
    with open(kept, "w") as out:
        out.write(done.stdout)
    same_but_loaded("two runs: kept", compare(kept, "--json").stdout, done.stdout, kept)
    check_in("two runs: of three", "both.json: is put together from two files already",
             compare(kept, os.path.join(FOLDER.name, "after.json")).stderr)
    check_in("two runs: as text", "after tuned against before default", held(one, two).stdout)
    other_gpu = changed(two, bus_ids=["0000:ff:00.0", two["bus_ids"][1]])
    for name, second, why in (
        ("another machine", other_gpu, "after.json: is of another kind of machine: GPU 0 is at 0000:ff:00.0 there"),
        ("other GPUs", changed(two, gpus=[0, 6]), "after.json: is of GPUs 0,6 (2 ranks)"),
        ("a real one", changed(two, virtual=False), "after.json: is of a real machine"),
        ("other sizes", changed(two, results=[changed(r, size=4096 + i // 3 * 4096, type="half") for i, r in
                                              enumerate(two["results"])]), "no case in common"),
    ):
        if name == "other sizes":
            for k, r in enumerate(second["results"]):
                r["size"] = two["results"][k]["size"]
        done = held(one, second)
        check(f"two runs, {name}: refused", (done.returncode, done.stdout), (3, ""))
        check_in(f"two runs, {name}: why", why, done.stderr)
    release = changed(two, nccl={"path": "p", "version": "2.23.4"}, host="elsewhere", driver="1.2", min_gain=0.5)
    release["settings"] = changed(two["settings"], threads=True, environment={"NCCL_ALGO": "Tree"})
    done = held(one, release, "--json")
    notes = " ".join(json.loads(done.stdout)["notes"])
    for said in ("Two hosts of one kind: vm and elsewhere", "Two drivers", "Two releases of NCCL: 2.28.9 and 2.23.4",
                 "Thresholds differ", "Not measured alike", "Other variables"):
        check_in("two runs, differences are said", said, notes)


def two_profiles():
    """What two profiles measured, and what each would decide."""
    shipped = os.path.join(os.environ["GV100_PROFILE_DIR"], "4028.yaml")
    with open(shipped) as file:
        text = file.read()
    slower, other = os.path.join(FOLDER.name, "slower.yaml"), os.path.join(FOLDER.name, "other.yaml")
    check("the profile has the figure", text.count("busbw_gbs: [7.94]"), 1)
    with open(slower, "w") as out:
        out.write(text.replace("busbw_gbs: [7.94]", "busbw_gbs: [6.93]"))
    with open(other, "w") as out:
        out.write(text.replace("Tesla V100", "Quadro GV100"))
    result = json.loads(compare("4028", "--gpus", "0-5", "--json").stdout)
    (row,) = result["comparisons"]
    check("a profile: verdict", (row["verdict"], row["size"], result["thin"]), ("gain", 1 << 30, True))
    near("a profile: default", row["base_result"]["bus_bw"], 6.89, 1e-9)
    near("a profile: tuned", row["variant_result"]["bus_bw"], 7.94, 1e-9)
    check("a profile: edges", (transports(result, "default")[4, 5], transports(result, "tuned")[4, 5]), ("SHM", "P2P"))
    again = subprocess.run(["sh", "-c", result_command(result)], env=TRUSTED, stdout=subprocess.PIPE, text=True, check=True)
    check("a profile: shown again", json.loads(again.stdout), result)
    both = json.loads(compare(shipped, slower, "--gpus", "0-5", "--json").stdout)
    check("two profiles", [(v["name"], v["plugin_transport"]) for v in both["variants"]],
          [("4028 default", ""), ("4028 tuned", "p2p"), ("slower default", ""), ("slower tuned", "default")])
    check("two profiles: verdicts", {r["variant"]: r["verdict"] for r in both["comparisons"]},
          {"4028 tuned": "gain", "slower default": "tie", "slower tuned": "tie"})
    check("two profiles: said", ["a profile: its samples" in n for n in both["notes"]], [False, True, True])
    for args, why in (
        ([shipped], "has several groups, one is to be named with --gpus: 0-1; 0,5"),
        ([shipped, "--gpus", "0-2"], "did not measure GPUs 0-2; it measured 0-1"),
        ([shipped, other, "--gpus", "0-5"], "other.yaml: is of another kind of machine: GPU 0 is a Quadro GV100"),
        ([shipped, "/nonexistent.yaml", "--gpus", "0-5"], "/nonexistent.yaml"),
    ):
        done = compare(*args)
        check(f"profiles, {why}: refused", (done.returncode, done.stdout), (3, ""))
        check_in("profiles: why", why, done.stderr)


def result_command(result):
    """What shows a comparison of files again, as its report says it."""
    files = " ".join(o["file"] for o in result["origins"])
    gpus = ",".join(map(str, result["gpus"]))
    return f"{BIN}/gv100 compare {files} --gpus {gpus} --json"


def made_up(times):
    """A saved run whose tuned variant takes `times` (us) at 64M instead of 1000."""
    path = os.path.join(FOLDER.name, "made-up.json")
    one = {"operation": "AllReduce", "size": 64 << 20, "type": "float", "redop": "sum", "in_place": False, "nwrong": 0,
           "bound": 0.0, "throttled": [], "error": ""}
    ring = {"order": [], "edges": [], "slowest": -1}
    settings = {"machine": "", "libraries": ["p"], "operations": ["AllReduce"], "type": "float", "redop": "sum",
                "min_bytes": 64 << 20, "max_bytes": 64 << 20, "factor": 2.0, "in_place": False, "threads": False,
                "repeats": 5, "iterations": 0, "ranks_per_gpu": 0, "timeout_s": 0.0, "check_bytes": 0, "variants": [],
                "witness": "", "environment": {}}
    run_ = {"gv100_compare": 2, "settings": settings, "host": "h", "driver": "d", "date": "t", "tool": "x", "virtual": False,
            "nccl": {"path": "p", "version": "2.28.9"}, "profile": "", "min_gain": 0.03, "max_loss": 0.05,
            "gpus": [0, 1], "bus_ids": ["", ""], "base": "default",
            "variants": [{"name": n, "force": "", "decided": "", "plugin_transport": "", "channels": 1, "ring": ring}
                         for n in ("default", "tuned")],
            "results": [dict(one, variant="default", times=[1000.0] * 5, first_times=[0.0] * 5),
                        dict(one, variant="tuned", times=times, first_times=[0.0] * 5)]}
    with open(path, "w") as out:
        json.dump(run_, out)
    return path


def sizes_of_a_job():
    path, table = made_up([900.0] * 5), os.path.join(FOLDER.name, "sizes.txt")

    def job(text, *args, run_=path):
        with open(table, "w") as out:
            out.write(text)
        done = compare(run_, "--sizes", table, *args)
        return done.returncode, done.stdout, done.stderr

    status, out, _ = job("# one step\n64M AllReduce 24\n", "--step-time", "1")
    check("sizes: status", status, 0)
    check_in("0.24 % is called 0.24 %", "0.24 % of a step of 1 s (0.24 to 0.24 %)", out)
    check_in("sizes: seconds", "0.0024 s saved a step", out)
    status, out, _ = job("64M AllReduce 48\n", "--step-time", "1", "--steps", "2", "--json")
    (gain,) = json.loads(out)["job"]["gains"]
    near("sizes: share", gain["share"]["value"], 0.0024, 1e-9)
    kept = os.path.join(FOLDER.name, "with-job.json")
    status, out, _ = job("64M AllReduce 48\n", "--step-time", "1", "--steps", "2", "--json", "--save", kept)
    same_but_loaded("sizes: kept", compare(kept, "--json").stdout, out.replace(f'"loaded": "{path}"', '"loaded": ""'), kept)
    check("sizes: what was read", json.loads(out)["job"]["sizes"], [{"operation": "AllReduce", "size": 64 << 20, "calls": 48.0}])
    # twice the size takes twice the time at the same bandwidth, and that is said
    status, out, _ = job("128M,AllReduce,12\n1K\tAllGather\t5\n", "--step-time", "1")
    check_in("sizes: beyond", "100 % of that time is at sizes outside the measured ones", out)
    check_in("sizes: missing", "5 calls a step are of operations that were not measured", out)
    spread = made_up([880.0, 890.0, 900.0, 910.0, 920.0])
    _, out, _ = job("64M AllReduce 10\n", "--json", run_=spread)
    saved = json.loads(out)["job"]["gains"][0]["saved_s"]
    near("sizes: low", saved["low"], 0.0009, 1e-6)
    near("sizes: high", saved["high"], 0.0011, 1e-6)
    log = "".join(f"h:{pid}:9 [0] NCCL INFO AllReduce: opCount {i} sendbuff 0x1 recvbuff 0x1 count 16777216 datatype 7 "
                  f"op 0 root 0 comm 0x5 [nranks=2] stream 0x7\n" for i in range(24) for pid in (70, 71))
    status, out, _ = job(log, "--step-time", "1")
    check_in("sizes: of a log", "from NCCL's log", out)
    check_in("sizes: one rank of a log counts", "0.24 % of a step", out)
    for text, why in (("64M AllReduce\n", "sizes.txt:1: SIZE OPERATION CALLS"), ("64M AllReduse 3\n", "no operation"),
                      ("\n64Q AllReduce 3\n", "sizes.txt:2:"), ("64M AllReduce -1\n", "no number of calls"),
                      ("", "no line"), ("h:1:2 [0] NCCL INFO Init\n", "holds no calls")):
        status, out, err = job(text)
        check(f"sizes {text!r}: status", (status, out), (3, ""))
        check_in(f"sizes {text!r}: cause", why, err)


def two_releases():
    library = os.path.realpath(os.path.join(BIN, "..", "lib", "virtual", "libnccl.so.2"))
    names = []
    for release in ("2.19.3", "2.28.9"):
        names.append(os.path.join(FOLDER.name, f"libnccl.so.{release}"))
        os.symlink(library, names[-1])
    args = ["--virtual", "4028", "--profile", "4028", "--gpus", "0-5", "-b", "64K", "-e", "64M", "-f", "1024",
            "--repeats", "3", "--nccl", names[0], "--nccl", names[1]]
    result = json.loads(compare(*args, "--json").stdout)
    wanted = ["2.19.3 default", "2.19.3 tuned", "2.28.9 default", "2.28.9 tuned"]
    check("releases", [v["name"] for v in result["variants"]], wanted)
    check("their NCCL", [v["nccl"] for v in result["variants"]], ["2.19.3", "2.19.3", "2.28.9", "2.28.9"])
    check("in turn", {len(r["times"]) for r in result["results"]}, {3})
    check("base", result["base"], "2.19.3 default")
    check("both libraries are kept", (result["settings"]["libraries"], result["settings"]["repeats"]), (names, 3))
    check_in("both libraries are named again", f"--nccl {names[0]} --nccl {names[1]} ", result["settings"]["command"])
    again = subprocess.run(["sh", "-c", result["settings"]["command"].replace("gv100 compare", f"{BIN}/gv100 compare --json")],
                           env=TRUSTED, stdout=subprocess.PIPE, text=True, check=True)
    check("two releases again", json.loads(again.stdout)["variants"], result["variants"])
    text = compare(*args).stdout
    check_in("what moved", "edges moved: 4 -> 5: P2P/IPC, was SHM/direct/direct", text)
    check_in("what did not", "no edge moved", text)


TABLE = """# nThread 1 nGpus 2 minBytes 1048576 maxBytes 1048576 step: 16(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1 on  h device  0 [0x1a] Tesla V100-PCIE-32GB
#  Rank  1 Group  0 Pid   1 on  h device  1 [0x3d] Tesla V100-PCIE-32GB
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1   %s      0   %s      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : %s
#
"""


def a_witness():
    """A program in the place of all_reduce_perf: what it is given, and what is made of its table."""
    program, seen = os.path.join(FOLDER.name, "all_reduce_perf"), os.path.join(FOLDER.name, "seen")
    tables = {"default": ("174.8    6.00    6.00",) * 2 + ("6.00",), "tuned": ("154.2    6.80    6.80",) * 2 + ("6.80",)}
    for name, figures in tables.items():
        with open(os.path.join(FOLDER.name, name + ".table"), "w") as out:
            out.write(TABLE % figures)
    with open(program, "w") as out:
        out.write(f"""#!/bin/sh
echo "$* force=$GV100_FORCE gpus=$CUDA_VISIBLE_DEVICES plugin=$NCCL_ENV_PLUGIN by=$GV100_FORCE_BY parent=$PPID" >> {seen}
cat {FOLDER.name}/$([ "$GV100_FORCE" = default ] && echo default || echo tuned).table
""")
    os.chmod(program, 0o755)
    args = ["--virtual", "4028", "--profile", "4028", "--gpus", "0,5", "-o", "AllReduce", "-b", "1M", "-e", "1M",
            "--repeats", "3", "--with", program]
    done = compare(*args, "--save", os.path.join(FOLDER.name, "with.json"), "--json")
    check("witness: status", (done.returncode, done.stderr), (0, ""))
    result = json.loads(done.stdout)
    check("witness: results", [(w["variant"], w["operation"], w["size"], w["bus_bw"]) for w in result["witness"]["results"]],
          [("default", "AllReduce", 1 << 20, 6.0), ("tuned", "AllReduce", 1 << 20, 6.8)])
    saved = os.path.join(FOLDER.name, "with.json")
    same_but_loaded("witness: saved", compare(saved, "--json").stdout, done.stdout, saved)
    lines = open(seen).read().splitlines()
    check("witness: once a variant", len(lines), 2)
    for line, force in zip(lines, ("default", "")):
        check_in("witness: arguments", "-b 1048576 -e 1048576 -f 16 -g 2", line)
        check_in("witness: the same plan", f"force={force} gpus=0,5 plugin=/", line)
        words = dict(w.split("=", 1) for w in line.split() if "=" in w)
        check("witness: a direct child", words["by"], words["parent"])
    check_in("witness: the table", "witness", compare(os.path.join(FOLDER.name, "with.json")).stdout)
    with open(program, "w") as out:
        out.write("#!/bin/sh\necho no such device\nexit 3\n")
    done = compare(*args)
    check("witness fails: status", (done.returncode, done.stdout), (3, ""))
    check_in("witness fails: its words", "failed under default: no such device", done.stderr)


def plans_that_cannot_be():
    result = run("--gpus", "0-5", "--variant", "lend 0-9", "--variant", "frobnicate", "--variant", "lend 4-5 5-0",
                 "-o", "AllReduce", "-b", "1M", "-e", "1M", "--repeats", "3")
    by_name = {r["variant"]: r for r in result["results"]}
    check("no samples of a plan that was not followed",
          [(name, len(by_name[name]["times"])) for name in ("lend 0-9", "frobnicate", "lend 4-5 5-0")],
          [("lend 0-9", 0), ("frobnicate", 0), ("lend 4-5 5-0", 3)])
    check_in("cause", "'0-9' is no pair of this communicator", by_name["lend 0-9"]["error"])
    check_in("cause", "'frobnicate' is not known", by_name["frobnicate"]["error"])
    # A ninth peer: the all-to-all fails, and the rest goes on.
    result = run("--gpus", "0-9", "--variant", "lend 4-5 8-0", "--variant", "bridge", "-b", "1M", "-e", "1M",
                 "--repeats", "3")
    found = {(r["variant"], r["operation"]): r for r in result["results"]}
    check("all-to-all over lent links", len(found["lend 4-5 8-0", "AllToAll"]["times"]), 3)
    check("AllReduce under a bridge of ten", len(found["bridge", "AllReduce"]["times"]), 0)


def left_behind():
    shm = [n for n in os.listdir("/dev/shm") if n.startswith("nccl-") and n not in BEFORE]
    return (shm, [n for n in os.listdir(FOLDER.name) if n.startswith("gv100-")], workers())


def workers():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f, open(f"/proc/{pid}/environ", "rb") as e:
                if b"compare\0--worker" in f.read() and FOLDER.name.encode() in e.read():
                    found.append(int(pid))
        except OSError:
            pass
    return sorted(found)


def struck(signal_number, rank_of, *args):
    """A run of which one worker is struck in the middle, that is after the first samples and before the last:
    when that is depends on the machine and on who else computes here."""
    early, late, delay = 0, None, 1.5
    for _ in range(10):
        result = struck_after(delay, signal_number, rank_of, *args)
        if result and result[2] != 3:
            break
        if result:  # there was no sample yet
            early = delay
        else:
            late = delay
        delay = (early + late) / 2 if late else 4 * delay
    return result


def struck_after(delay, signal_number, rank_of, *args):
    """Starts a run, strikes one worker, and returns what became of it; None where it had ended before."""
    process = subprocess.Popen(
        [os.path.join(BIN, "gv100"), "compare", "--virtual", "4028", "--profile", "4028", "--gpus", "0-3", "-o",
         "AllReduce", "-b", "1M", "-e", "1M", "--repeats", "60", "--iterations", "200", "--json", *args],
        env=TRUSTED, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.time() + 30 * SLOW
    while len(workers()) < 4 and process.poll() is None and time.time() < until:
        time.sleep(0.05)
    time.sleep(delay)
    there = workers()
    if len(there) == 4:
        os.kill(there[rank_of], signal_number)
    since = time.time()
    out, err = process.communicate(timeout=120 * SLOW)
    return (out, err, process.returncode, time.time() - since) if len(there) == 4 else None


def workers_that_die_or_hang():
    out, err, status, _ = struck(signal.SIGKILL, 2)
    check("a worker was killed: status", (status, err), (0, ""))
    errors = {r["error"] for r in json.loads(out)["results"]} - {""}
    check("a worker was killed: one variant ends", len(errors), 1)
    check_in("a worker was killed: who", "(GPU 2) died by signal 9", errors.pop())
    out, err, status, seconds = struck(signal.SIGSTOP, 1, "--timeout", str(2 * SLOW))
    errors = {r["error"] for r in json.loads(out)["results"]} - {""}
    check("a worker hangs: bounded", seconds < 60 * SLOW, True)
    check("a worker hangs: one variant ends", len(errors), 1)
    text = errors.pop()
    check_in("a worker hangs: last step", "its last step: ", text)
    check("nothing is left", left_behind(), ([], [], []))


def refused():
    for args, why in (
        (["--gpus", "11"], "there is no GPU 11"), (["--variant", ""], "1 to 255 letters"), (["-b", "2M", "-e", "1M"], "-b is over -e"),
        (["-b", "8", "-e", "1M"], "AllToAll of 8 bytes over 11 ranks"),
        (["--type", "float7"], "'float7' is not known"), (["--operation", "AllReduse"], "AllReduse"),
        (["--repeats", "0"], "between 1 and 64"), (["--ranks-per-gpu", "2"], "the virtual NCCL plays one host"), (["--nccl", "/nonexistent/libnccl.so.2"], "cannot be read"),
    ):
        done = compare("--virtual", "4028", *args)
        check(f"{args}: refused", done.returncode in (2, 3) and not done.stdout, True)
        check_in(f"{args}: cause", why, done.stderr)


published()
edges_before_and_after()
targets_are_tried_first()
names_of_variants()
results_are_checked()
threads_and_one_rank()
saved_runs()
measure_again()
two_runs()
two_profiles()
sizes_of_a_job()
two_releases()
a_witness()
plans_that_cannot_be()
workers_that_die_or_hang()
refused()
check("nothing is left at the end", left_behind(), ([], [], []))
finish()
