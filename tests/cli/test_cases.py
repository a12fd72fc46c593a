"""Pastes, tables, XML and logs as people post them: each with its right answer, or refused at the
right line for the right reason (tests/cases/cases.json). GV_CASES, a folder of the originals, is
read too where it is set."""

import json
import os

from gv_cli import SOURCE, check, check_in, environment, finish, gv100, gv100_json

FOLDER = os.path.join(SOURCE, "tests/cases")


def refused(name, path, row, line):
    done = gv100(row["command"], path)
    check(f"{name} status", done.returncode, 3)
    check(f"{name} stdout", done.stdout, "")
    check_in(f"{name} reason", row["refused"]["text"], done.stderr)
    if line:
        check_in(f"{name} place", f"{path}:{line}:", done.stderr)
    done = gv100(row["command"], path, "--json")
    got = json.loads(done.stdout)["refused"]
    check(f"{name} file as JSON", got["file"], path)
    if line:
        check(f"{name} line as JSON", got["line"], line)


def partition(labels):
    """Groups of equal labels by index, in the order in which they begin."""
    return [[i for i, x in enumerate(labels) if x == y] for y in dict.fromkeys(labels)]


def matrix(name, got, facts):
    n = len(facts["matrix"])
    cells = [["X" if a == b else "?" for b in range(n)] for a in range(n)]
    bad = []
    for source in got["sources"]:
        for pair in source["pairs"]:
            if "smi_class" in pair:
                cells[pair["from"]][pair["to"]] = pair["smi_class"]
            if pair.get("p2p") == "refused":
                bad.append([pair["from"], pair["to"]])
    check(f"{name} matrix", [" ".join(row) for row in cells], facts["matrix"])
    check(f"{name} pairs without P2P", bad, facts["refused_pairs"])
    gpus = got["sources"][0]["gpus"]
    if facts["numa"]:
        check(f"{name} NUMA nodes", [g.get("numa_node") for g in gpus], facts["numa"])
    if not any(cell.startswith(("NV", "?")) for row in cells for cell in row):
        near = [min(b for b in range(n) if b == a or cells[a][b] in ("PIX", "PXB")) for a in range(n)]
        check(f"{name} islands", partition([g["island"] for g in gpus]), partition(near))


def table(name, got, facts):
    (source,) = got["sources"]
    check(f"{name} GPUs", len(source["gpus"]), facts["gpus"])
    check(f"{name} operations", {s["op"] for s in source["samples"]}, {facts["op"]})
    have = [[s["bytes"], s["busbw_gbs"]] for s in source["samples"]]
    check(f"{name} figures", [s for s in facts["samples"] if s not in have], [])


def figures(name, got, facts):
    """Bandwidths of pairs and of single GPUs, by key."""
    (source,) = got["sources"]
    for key, wanted in facts.get("pairs", {}).items():
        have = [[p["from"], p["to"], p[key]] for p in source["pairs"] if key in p]
        check(f"{name} {key}", sorted(have), wanted)
    for key, wanted in facts.get("singles", {}).items():
        check(f"{name} {key}", [s[key] for s in source["singles"] if key in s], wanted)
    if "models" in facts:
        check(f"{name} models", [g.get("model") for g in source["gpus"]], facts["models"])
    if "bus_ids" in facts:
        check(f"{name} PCI addresses", [g.get("bus_id") for g in source["gpus"]], facts["bus_ids"])


def choices(name, got, facts):
    keys = ("op", "min_bytes", "max_bytes", "algorithm", "protocol", "channels", "nodes", "ranks", "pipe_ops", "registered")
    rows = [" ".join(str(row.get(key, "any")) for key in keys) for row in got["sources"][0]["tuner"]]
    check(f"{name} rows", rows, facts["tuner"])


def devices(name, got, facts):
    gpus = got["sources"][0]["gpus"]
    check(f"{name} PCI addresses", [g["bus_id"] for g in gpus], facts["bus_ids"])
    check(f"{name} NUMA nodes", [g.get("numa_node") for g in gpus], facts["numa"])
    check(f"{name} islands", partition([g["island"] for g in gpus]), facts["islands"])
    if "pci_devices" in facts:
        check(f"{name} devices", [g["pci_device"] for g in gpus], facts["pci_devices"])
        check(f"{name} models", [g.get("model") for g in gpus], facts["models"])
    links = [[p["from"], p["to"]] for p in got["sources"][0]["pairs"] if p["from"] < p["to"]]
    check(f"{name} NVLinks", links, facts.get("nvlink_pairs", []))


def rings(name, got, facts):
    check(f"{name} rings", [r["order"] for r in got["sources"][0]["rings"]], facts["rings"])


def log(name, got, facts):
    check(f"{name} NCCL", got["nccl"], facts["nccl"])
    check(f"{name} tuner", got["tuner"]["in_use"], facts["tuner"])
    if "paths" in facts:
        got_paths = {}
        for p in got["paths"]:
            key = f"{p['class']} {p['model_gbs']}"
            got_paths[key] = got_paths.get(key, 0) + 1
        check(f"{name} paths", got_paths, facts["paths"])
    check(f"{name} communicators", len(got["communicators"]), facts["communicators"])
    if not facts["communicators"]:
        return
    (comm,) = got["communicators"]
    edges = [f"{e['from']} {e['to']} {e['transport']}" for e in comm["edges"]]
    check(f"{name} edges", edges, facts["edges"])
    check(f"{name} rings", [r["order"] for r in comm["rings"]], facts["rings"])
    check(f"{name} ranks", comm["nranks"], facts["nranks"])
    if "channels" in facts:
        check(f"{name} channels", comm["channels"], facts["channels"])
    for fact, key in (("bus_ids", "bus_id"), ("nvml", "nvml_dev")):
        if fact in facts:
            check(f"{name} {key}", [r[key] for r in comm["ranks"]], facts[fact])
    if "hosts" in facts:
        check(f"{name} hosts", [r["host"][-1] for r in comm["ranks"]], facts["hosts"])


def right(name, path, row):
    got = gv100_json(row["command"], path)
    facts = row["facts"]
    if row["command"] == "log":
        log(name, got, facts)
    elif "matrix" in facts:
        matrix(name, got, facts)
    elif "samples" in facts:
        table(name, got, facts)
    elif "rings" in facts:
        rings(name, got, facts)
    elif "pairs" in facts or "singles" in facts:
        figures(name, got, facts)
    elif "tuner" in facts:
        choices(name, got, facts)
    else:
        devices(name, got, facts)


def one(name, path, row, line_key):
    if "refused" in row:
        refused(name, path, row, row["refused"][line_key])
    else:
        right(name, path, row)


with open(os.path.join(FOLDER, "cases.json"), encoding="utf-8") as f:
    ROWS = json.load(f)
check("rows", len(ROWS) > 80, True)
for row in ROWS:
    one(row["file"], os.path.join(FOLDER, row["file"]), row, "line")
ORIGINALS = os.environ.get("GV_CASES")
for row in ROWS if ORIGINALS else []:
    if row["original"]:
        one(row["original"], os.path.join(ORIGINALS, row["original"]), row, "original_line")
finish()
