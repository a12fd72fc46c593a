"""Which GPUs for which work: the published cut of the reference machine, from its profile alone."""

import itertools
import json
import os
import re
import tempfile

from gv_cli import check, check_in, environment, finish, gv100, gv100_json, sysfs

PROFILE = ("--profile", "4028")

# arguments, best group, busbw, evidence, least memory
BEST = [
    ("--gpus 5", [0, 1, 2, 3, 4], 11.17, "measured", 32),
    ("--gpus 6", [0, 1, 2, 3, 4, 5], 7.94, "measured", 32),
    ("--gpus 10", list(range(10)), 7.87, "measured", 32),
    ("--gpus 2 --kind sync", [7, 9], 73.31, "measured", 32),
    ("--gpus 2 --busy 7", [0, 1], 11.4, "measured", 32),
    ("--gpus 5 --busy 3,4", [5, 6, 7, 8, 9], 11.17, "inferred", 32),
    ("--gpus 5 --within 0-3,5", [0, 1, 2, 3, 5], 7.94, "inferred", 32),
    ("--gpus 2 --within 0,6", [0, 6], 6.99, "inferred", 32),
    ("--gpus 2 --within 0,10 --busy 1", None, None, "(0) fit", 3),
    ("--kind pair --memory 64G", [7, 9], 73.31, "measured", 32),
    ("--kind pair --memory 64G --busy 9", [0, 1], 11.4, "measured", 32),
    ("--kind pair --memory 65G", None, None, "65", 3),
    ("--kind memory", [6], None, "none", 32),
    ("--kind memory --busy 6", [8], None, "none", 32),
    ("--kind memory --busy 6,8", [0], None, "none", 32),
    ("--kind memory --gpus 2", [6, 8], 11.4, "inferred", 32),
    ("--kind independent", [10], None, "none", 16),
    ("--kind independent --memory 24G", [5], None, "none", 32),
    ("--gpus 11", None, None, "belong in no ring", 3),
    ("--gpus 4 --memory 40G", None, None, "lack the memory", 3),
    ("--gpus 5 --busy 0-6", None, None, "4 are free", 3),
    ("--gpus 5 --busy 0-10", None, None, "5 GPUs are asked for and none is free\n", 3),
    ("--gpus 4 --memory 24T", None, None, "none of the free ones (0-10) fits: they lack the memory\n", 3),
]


def test_best():
    for args, gpus, busbw, words, memory in BEST:
        done = gv100("place", *PROFILE, *args.split(), "--json")
        if gpus is None:
            check(f"{args} status", done.returncode, memory)
            check_in(f"{args} why", words, done.stderr)
            continue
        result = gv100_json("place", *PROFILE, *args.split())["groups"][0]
        got = (result["gpus"], result["busbw_gbs"], result["evidence"], result["memory_gib"])
        check(args, got, (gpus, busbw, words, memory))
        check(f"{args} has a reason", len(result["reason"]) > 10, True)


def test_ten_is_never_in_a_ring():
    for n in range(2, 11):
        for kind in ("sync", "pair"):
            groups = gv100_json("place", *PROFILE, "--gpus", str(n), "--kind", kind, "--most", "1000")["groups"]
            check(f"{kind} {n}", any(10 in g["gpus"] for g in groups), False)
            figures = [g["busbw_gbs"] for g in groups]
            check(f"{kind} {n} best first", figures, sorted(figures, reverse=True))


# links by NVLink; options; the best group of a machine of which no group was measured
UNMEASURED = [
    ("--gpus 4", [0, 1, 2, 3]),
    ("--gpus 4 --busy 0", [4, 5, 6, 7]),  # not 1-4, through host memory
    ("--gpus 2 --busy 0,2,3", [4, 5]),
    ("--gpus 3 --busy 0,1", [4, 5, 6]),
    ("--kind memory --gpus 2 --busy 0,2,3", [4, 5]),
]


def test_unmeasured():
    """Where no group was measured the nearest comes first: two islands of four, PHB between them."""
    with tempfile.TemporaryDirectory() as folder:
        path, topo = os.path.join(folder, "x.yaml"), os.path.join(folder, "topo.txt")
        cell = [["X" if a == b else "NV4" if a // 4 == b // 4 else "PHB" for b in range(8)] for a in range(8)]
        with open(topo, "w", encoding="utf-8") as f:
            f.write("\t" + "\t".join(f"GPU{i}" for i in range(8)) + "\n")
            f.writelines(f"GPU{i}\t" + "\t".join(row) + "\n" for i, row in enumerate(cell))
        check("import", gv100("import", topo, "-o", path).returncode, 0)
        for args, gpus in UNMEASURED:
            group = gv100_json("place", "--profile", path, *args.split())["groups"][0]
            check(f"unmeasured {args}", (group["gpus"], group["evidence"]), (gpus, "none"))
        done = gv100("place", "--profile", path, "--memory", "16G")  # no memory is known
        check_in("memory not known", "none of the free ones (0-7) fits: they lack the memory, or it is not known", done.stderr)
        with open(topo, "w", encoding="utf-8") as f:
            f.write("a gpus=2\nb gpus=4\n")
        groups = gv100_json("place", "--profile", path, "--jobs", topo)["groups"]
        islands = [{g // 4 for g in group["gpus"]} for group in groups]
        check("jobs stay inside islands", [len(x) for x in islands], [1, 1])


def test_left():
    group = gv100_json("place", *PROFILE, "--gpus", "5", "--busy", "10")["groups"][0]
    check("left for others", group["left"], [5, 6, 7, 8, 9])


def jobs(text, *args):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
        f.write(text)
        f.flush()
        return gv100("place", *PROFILE, "--jobs", f.name, *args)


def test_jobs():
    text = "train: --gpus 5 --kind sync\nbig kind=pair memory=64G\n# a comment\nmem kind=memory\nsmall --kind=independent\n"
    done = jobs(text, "--json")
    got = {g["name"]: g["gpus"] for g in json.loads(done.stdout)["groups"]}
    check("the published cut", got, {"train": [0, 1, 2, 3, 4], "big": [7, 9], "mem": [6], "small": [10]})
    check("left", json.loads(done.stdout)["left"], [5, 8])
    text = jobs(text, "--format", "env").stdout
    check_in("for a shell", "# big\nexport CUDA_DEVICE_ORDER=PCI_BUS_ID\nexport CUDA_VISIBLE_DEVICES=7,9\n", text)


def test_jobs_are_the_best_division():
    """Against every division, with the figures that single requests give."""
    def figures(n, kind):
        groups = gv100_json("place", *PROFILE, "--gpus", str(n), "--kind", kind, "--most", "1000")["groups"]
        best = groups[0]["busbw_gbs"]
        return {tuple(g["gpus"]): g["busbw_gbs"] / best for g in groups}

    a, b, c = figures(4, "sync"), figures(2, "pair"), figures(2, "pair")
    best = max(
        a[x] + b[y] + c[z]
        for x, y, z in itertools.product(a, b, c)
        if len({*x, *y, *z}) == 8
    )
    placed = json.loads(jobs("a gpus=4\nb kind=pair\nc kind=pair\n", "--json").stdout)["groups"]
    got = a[tuple(placed[0]["gpus"])] + b[tuple(placed[1]["gpus"])] + c[tuple(placed[2]["gpus"])]
    check("each on its own", len({g for p in placed for g in p["gpus"]}), 8)
    check("the greatest sum", round(got, 6), round(best, 6))


def test_bad_jobs():
    for text, line, words in [
        ("a gpus=5\nb gpsu=2\n", 2, "'gpsu' is none of"),
        ("a gpus=0\n", 1, "no number from 1"),
        ("a kind=sink\n", 1, "'sink' is none of"),
        ("a gpus\n", 1, "has no value"),
        ("# nothing\n", 0, "no job"),
        ("a gpus=8\nb gpus=4\n", 0, "ask for 12 GPUs, 11 are free"),
    ]:
        done = jobs(text)
        check(f"{text!r} status", done.returncode, 3)
        check_in(f"{text!r} words", words, done.stderr)
        if line:
            check_in(f"{text!r} line", f".txt:{line}: ", done.stderr)


BY_BUS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
# what was given; GPUs of the machine; how CUDA counts them there, or why it cannot be told
ALLOCATIONS = [
    ({}, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
    ({"SLURM_JOB_GPUS": "5-9"}, [5, 6, 7, 8, 9], [5, 6, 7, 8, 9]),
    ({"SLURM_JOB_GPUS": "0-9", "SLURM_STEP_GPUS": "5-9"}, [5, 6, 7, 8, 9], [5, 6, 7, 8, 9]),
    # devices kept apart by cgroups: the job counts its own from 0
    ({"SLURM_JOB_GPUS": "5-9", "CUDA_VISIBLE_DEVICES": "0,1,2,3,4"}, [7, 9], [2, 4]),
    ({"SLURM_JOB_GPUS": "5-9", "CUDA_VISIBLE_DEVICES": "0,1,2", **BY_BUS}, [5, 6, 7], [0, 1, 2]),
    ({"SLURM_JOB_GPUS": "5-9", "CUDA_VISIBLE_DEVICES": "0,1,2,3,7"}, [], "not given"),
    # not kept apart: both lists are the machine's
    ({"SLURM_JOB_GPUS": "5-9", "CUDA_VISIBLE_DEVICES": "5,6,7,8,9"}, [7, 9], [7, 9]),
    # a container
    ({"NVIDIA_VISIBLE_DEVICES": "7,9,10"}, [7, 9], [0, 1]),
    ({"NVIDIA_VISIBLE_DEVICES": "6,7,9", "CUDA_VISIBLE_DEVICES": "1,2", **BY_BUS}, [7, 9], [1, 2]),
    ({"NVIDIA_VISIBLE_DEVICES": "all"}, [7, 9], [7, 9]),
    ({"NVIDIA_VISIBLE_DEVICES": "void", "SLURM_JOB_GPUS": "7,9"}, [7, 9], [7, 9]),
    ({"CUDA_VISIBLE_DEVICES": "0,1,2,3,5", **BY_BUS}, [0, 1, 2, 3, 5], [0, 1, 2, 3, 5]),
    ({"CUDA_VISIBLE_DEVICES": "0,1,2,3,5"}, [], "fastest GPU first"),
    ({"CUDA_VISIBLE_DEVICES": "0,x"}, [], "--within"),
]


def test_allocation():
    """Only what the job may use, where a machine is looked at."""
    root = sysfs()
    for given, gpus, numbers in ALLOCATIONS:
        env = environment(GV100_SYSFS=root, **given)
        if isinstance(numbers, str):
            done = gv100("place", env=env)
            check(f"{given}: status", done.returncode, 2)
            check_in(f"{given}", numbers, done.stderr)
            continue
        args = ("place", "--gpus", str(len(gpus)))
        best = gv100_json(*args, env=env)["groups"][0]
        check(f"{given}", (best["gpus"], best["cuda_visible_devices"]), (gpus, ",".join(map(str, numbers))))
        text = gv100(*args, "--format", "env", env=env).stdout
        check_in(f"{given}: for a shell", f"CUDA_VISIBLE_DEVICES={best['cuda_visible_devices']}\n", text)
    env = environment(GV100_SYSFS=root, CUDA_VISIBLE_DEVICES="MIG-1")
    check_in("neither number nor UUID", "--within", gv100("place", env=env).stderr)
    env = environment(GV100_SYSFS=root)
    devices = os.path.join(root, "bus/pci/devices")
    with_vendor = {d: open(os.path.join(devices, d, "class"), encoding="utf-8").read() for d in os.listdir(devices)}
    buses = sorted(d for d, kind in with_vendor.items() if kind.startswith("0x0302"))
    for i, bus_id in enumerate(buses):
        os.makedirs(os.path.join(root, "gv100/gpus", bus_id))
        with open(os.path.join(root, "gv100/gpus", bus_id, "uuid"), "w", encoding="utf-8") as f:
            f.write(f"GPU-{i:08x}-0000\n")
    text = gv100("place", "--kind", "pair", "--format", "uuid", env=env).stdout
    check("UUIDs", text, "export CUDA_VISIBLE_DEVICES=GPU-00000007-0000,GPU-00000009-0000\n")
    env["CUDA_VISIBLE_DEVICES"] = "GPU-00000001,GPU-00000009-0000"
    check("allocated by UUID", gv100_json("place", env=env)["groups"][0]["gpus"], [1, 9])
    check_in("not in the profile alone", "UUID", gv100("place", *PROFILE, "--format", "uuid").stderr)


def test_options_of_one_job():
    for args in (["--gpus", "3"], ["--kind", "pair"], ["--memory", "1G"]):
        done = gv100("place", *PROFILE, "--jobs", "jobs.txt", *args)
        check(f"--jobs {args}", (done.returncode, "each line of --jobs" in done.stderr), (2, True))
        done = gv100("place", *PROFILE, "--format", "gres", *args)
        check(f"--format gres {args}", (done.returncode, "whole host" in done.stderr), (2, True))


def test_gres():
    lines = [l for l in gv100("place", *PROFILE, "--format", "gres").stdout.splitlines() if l.startswith("Name=")]
    check("a line a GPU", len(lines), 11)
    rows = [[int(x) for x in l.split("Links=")[1].split(",")] for l in lines]
    check("symmetric", rows, [list(r) for r in zip(*rows)])
    check("itself is -1", [rows[i][i] for i in range(11)], [-1] * 11)
    check("NVLink most", rows[7][9] > rows[7][8] > rows[7][0], True)
    check_in("type", "Type=quadro-gv100 ", lines[7])
    text = gv100("place", *PROFILE, "--format", "gres").stdout
    (counted,) = [l.split("Gres=")[1] for l in text.splitlines() if l.startswith("# slurm.conf")]
    types = [re.search("Type=(\\S+)", l).group(1) for l in lines]
    check("slurm.conf counts the same types", counted, ",".join(f"gpu:{t}:{types.count(t)}" for t in dict.fromkeys(types)))


def test_large():
    """Sixteen GPUs: every group of eight is looked at."""
    gpus = "".join(
        f"    - {{index: {i}, model: X, pci_vendor: 0x10de, pci_device: 0x1db6, memory_mib: 1000, "
        f"numa_node: 0, island: {'AB'[i // 8]}}}\n"
        for i in range(16)
    )
    tail = """provenance:
  kind: published
  date: "2026-01-01"
groups:
  - gpus: 0-7
    op: AllReduce
    bytes: 1G
    variants:
      - {edit: none, runs: [{name: a, busbw_gbs: [11.0]}]}
complete: true
"""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("gv100_profile: 1\nname: x\nmachine:\n  match: shape\n  gpus:\n" + gpus + tail)
        f.flush()
        done = gv100("place", "--profile", f.name, "--gpus", "8", "--json")
        result = json.loads(done.stdout)
        check("candidates", result["candidates"], 12870)
        check("best", result["groups"][0]["gpus"], list(range(8)))
        check("the other switch", result["groups"][1]["gpus"], list(range(8, 16)))


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        test()
finish()
