"""Called by packages.sh: torch.distributed under each way in, a table on stdout and packages.json.

A row is one job: a way in, an installation, one process or two ranks, and what the plugin is told
about the pair of GPUs: `verified` (NCCL's own P2P stays) or `corrupt` (the pair must be separated, so
SHM). From NCCL's log: which of the plugin's slots were used and each edge's transport; from the job:
whether every element of every all-reduce was right."""

import argparse
import json
import os
import re
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.environ.get("GV_TORCH_JOB", os.path.join(HERE, "torch_job.py"))
LIMIT_S = 120
# What NCCL writes when it takes the plugin into a slot, by release.
SLOTS = {"env": r"ENV/Plugin: Using gv100|loaded external env plugin \S*(?:gv100|libnccl-env)",
         "net": r"NET/Plugin: Loaded net plugin gv100|loaded external network plugin \S*gv100",
         "tuner": r"TUNER/Plugin: Using gv100|Using tuner plugin gv100|loaded external tuner plugin \S*gv100"}


def arguments():
    p = argparse.ArgumentParser()
    for name in ("how", "root", "libraries", "python", "venv", "work", "out"):
        p.add_argument("--" + name, required=True)
    return p.parse_args()


def gpus():
    """Their number; the machine's own list, since a job may see fewer."""
    done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return len(re.findall(r"^GPU \d+:", done.stdout, re.MULTILINE))


def profile(a, state):
    """A profile of this machine that says `state` of the pair; NCCL's decision follows from it."""
    path = os.path.join(a.work, state + ".yaml")
    with open(path, "w", encoding="utf-8") as f:
        subprocess.run([a.python, os.path.join(HERE, "profile.py"), state], stdout=f, check=True)
    return path


def ways(a):
    """Name, installation, command before the job, python of the job, variables, whether it acts."""
    deb, wheel = os.path.join(a.root or "/", "usr/bin/gv100"), os.path.join(a.venv, "bin/gv100")
    venv = os.path.join(a.venv, "bin/python")
    inside = subprocess.run([venv, "-c", "import gv100; print(gv100.plugin())"], capture_output=True, text=True,
                            check=True).stdout.strip()
    return [
        ("no variable", a.how, [], a.python, {}, False),
        ("NCCL_TUNER_PLUGIN=gv100", a.how, [], a.python, {"NCCL_TUNER_PLUGIN": "gv100"}, True),
        ("NCCL_ENV_PLUGIN=gv100", a.how, [], a.python, {"NCCL_ENV_PLUGIN": "gv100"}, True),
        ("gv100 run", a.how, [deb, "run", "--"], a.python, {}, True),
        ("gv100 run", "wheel", [wheel, "run", "--"], venv, {}, True),
        ("NCCL_ENV_PLUGIN=gv100.plugin()", "wheel", [], venv, {"NCCL_ENV_PLUGIN": inside}, True),
        ("GV100_DISABLE=1 gv100 run", "wheel", [wheel, "run", "--"], venv, {"GV100_DISABLE": "1"}, False),
    ]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def start(a, way, ranks, rank, port, where):
    _, install, before, python, variables, _ = way
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "GV100_"))}
    env.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
               MASTER_ADDR="127.0.0.1", MASTER_PORT=port, NCCL_DEBUG="INFO",
               NCCL_DEBUG_SUBSYS="INIT,ENV,NET,GRAPH,TUNING", **variables)
    if where:
        env.update(GV100_PROFILE=where, GV100_ASSUME_VERIFIED="1")
    if a.libraries and install != "wheel":
        env["LD_LIBRARY_PATH"] = a.libraries + (":" + env["LD_LIBRARY_PATH"] if env.get("LD_LIBRARY_PATH") else "")
    with open(os.path.join(a.work, f"rank{rank}.log"), "w", encoding="utf-8") as log:
        return subprocess.Popen([*before, python, JOB], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def job(a, way, ranks, where):
    """Exit statuses and the log of all ranks."""
    port, status = free_port(), []
    running = [start(a, way, ranks, r, port, where) for r in range(ranks)]
    for p in running:
        try:
            status.append(p.wait(LIMIT_S))
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
            status.append("hangs")
    text = ""
    for r in range(ranks):
        with open(os.path.join(a.work, f"rank{r}.log"), encoding="utf-8", errors="replace") as f:
            text += f.read()
    return status, text


def row(a, way, ranks, state, where):
    name, install, _, _, _, acts = way
    status, text = job(a, way, ranks, where)
    wrong = [int(n) for n in re.findall(r"^torch .* wrong (\d+) ", text, re.MULTILINE)]
    used = sorted(re.findall(r"via (P2P|SHM|NET)", text))
    release = re.search(r"NCCL version (\d+\.\d+\.\d+)", text) or re.search(r"nccl \((\d+), (\d+), (\d+)\)", text)
    busbw = [float(b) for b in re.findall(r" busbw ([0-9.]+)", text)]
    result = {
        "way": name, "install": install, "ranks": ranks, "profile": state,
        "nccl": ".".join(release.groups()) if release else None,
        "slots": [s for s, words in SLOTS.items() if re.search(words, text)],
        "transport": "/".join(sorted(set(used))) or "-", "edges": {t: used.count(t) for t in set(used)},
        "decisions": sorted(set(re.findall(r"^gv100: (.*)", text, re.MULTILINE)))[:4],
        "said": sorted(set(re.findall(r"(?:WARN|INFO) (?:\S+ )?gv100: (.{1,200})", text)))[:4],
        "busbw_gbs": max(busbw) if busbw else None, "checks": len(wrong), "wrong": sum(wrong), "status": status,
    }
    result["right"] = status == [0] * ranks and len(wrong) >= ranks and not sum(wrong)
    result["slots_as_expected"] = bool(result["slots"]) if acts else "tuner" not in result["slots"]
    if ranks == 1:
        result["transport_as_decided"] = None  # one rank has no edge
    else:
        separated = acts and state == "corrupt"
        result["transport_as_decided"] = result["transport"] == ("SHM" if separated else "P2P")
    result["ok"] = result["right"] and result["slots_as_expected"] and result["transport_as_decided"] is not False
    if not result["ok"]:
        log = re.sub(r"[^A-Za-z0-9]+", "-", f"{name} {install} {ranks} {state}").strip("-") + ".log"
        with open(os.path.join(a.out, log), "w", encoding="utf-8") as f:
            f.write(text[-200000:])
        result["log"] = log
    return result


def show(rows):
    heads = ["way in", "install", "ranks", "profile", "NCCL", "slots", "transport", "busbw", "right", "as expected"]
    cells = [heads] + [[
        r["way"], r["install"], str(r["ranks"]), r["profile"], r["nccl"] or "?", "+".join(r["slots"]) or "none",
        r["transport"], "-" if r["busbw_gbs"] is None else f"{r['busbw_gbs']:.1f}", "yes" if r["right"] else "NO",
        "yes" if r["ok"] else "NO",
    ] for r in rows]
    widths = [max(len(c[i]) for c in cells) for i in range(len(heads))]
    for c in cells:
        print("  ".join(x.ljust(w) for x, w in zip(c, widths)).rstrip(), flush=True)


def main():
    a = arguments()
    n, rows = gpus(), []
    states = [(s, profile(a, s)) for s in ("verified", "corrupt")] if n > 1 else []
    for way in ways(a):
        rows.append(row(a, way, 1, "none", None))
        for state, where in states if way[-1] else states[-1:]:
            rows.append(row(a, way, 2, state, where))
    show(rows)
    bad = [r for r in rows if not r["ok"]]
    if n < 2:
        print(f"two ranks were not run: {n} GPU here")
    for r in bad:
        print(f"NOT AS EXPECTED: {r['way']} ({r['install']}), {r['ranks']} ranks, {r['profile']}: status {r['status']}, "
              f"wrong {r['wrong']}, {r['checks']} checks; {r['log']}")
    with open(os.path.join(a.out, "packages.json"), "w", encoding="utf-8") as f:
        json.dump({"gpus": n, "how": a.how, "rows": rows}, f, indent=1)
    print(f"{len(rows) - len(bad)} of {len(rows)} as expected")
    sys.exit(1 if bad or not rows else 0)


main()
