"""`gv100 handoff` on the machines of the two published reports, with their figures; its verdicts; faults;
what --save leaves in the profile."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ["GV_SOURCE_DIR"], "tests/cli"))
from calibration import calibrate, faults, near, path_of  # noqa: E402
from gv_cli import check, check_in, finish, gv100, gv100_json  # noqa: E402

MAPPED, STAGED, COPY, READ = ("host, mapped", "host, staged", "peer copy", "peer read")
PROMPT_US = "14400000"  # 14.4 s, as published

# machine, options, verdict, peer's way, share of the step, gain (the published figures, or None)
VERDICTS = [
    ("2x2080ti", ["--bytes", "320M", "--compute-us", PROMPT_US], "tie", None, None),
    ("2x2080ti", ["--bytes", "320M", "--compute-us", PROMPT_US, "--host-traffic"], "tie", None, None),
    ("2x2080ti", ["--bytes", "80M", "--compute-us", PROMPT_US], "tie", (0.0024, 0.0025), None),
    ("2x2080ti", ["--bytes", "80M", "--compute-us", PROMPT_US, "--graph"], "tie", (0.0024, 0.0025), None),
    ("2x3090", ["--bytes", "4M", "--compute-us", "20000"], "loss", (0.04, 0.06), (-0.03, -0.02)),
    ("2x3090", ["--bytes", "4M", "--compute-us", "20000", "--graph"], "loss", None, (-0.03, -0.02)),
    # a stage that really waits on its hand-off
    ("2x2080ti", ["--bytes", "16M", "--compute-us", "2000"], "gain", (0.6, 0.9), (0.6, 0.9)),
    ("2x2080ti", ["--bytes", "16M", "--compute-us", "2000", "--graph", "--steps", "3"], "gain", None, (0.6, 0.9)),
    ("4028", ["--from", "0", "--to", "10"], "no peer", (1, 1), None),
]


def ways(result):
    return {w["method"]: w for w in result["ways"]}


def within(what, got, limits):
    if limits and not (got is not None and limits[0] <= got <= limits[1]):
        check(what, got, f"{limits[0]} to {limits[1]}")


def test_published():
    r = gv100_json("handoff", "--virtual", "2x2080ti", "--bytes", "320M", "--host-traffic")
    w = ways(gv100_json("handoff", "--virtual", "2x2080ti", "--bytes", "320M"))
    check("bytes", r["bytes"], 335544320)
    near("host path, 143 ms", w[MAPPED]["handoff_us"]["median"], 143e3, by=0.03)
    near("peer path, 7.16 ms", w[COPY]["handoff_us"]["median"], 7160, by=0.01)
    near("peer path, 46.9 GB/s", w[COPY]["handoff_gbs"], 46.9, by=0.01)
    near("read in place", w[READ]["handoff_us"]["median"], 7160, by=0.01)
    check("bit for bit", [m["data_ok"] for m in w.values()], [True] * 4)
    check("nine samples each", {m["handoff_us"]["count"] for m in w.values()}, {9})
    check("cold figures", all(m["handoff_cold_us"] > 0 for m in w.values()), True)
    x16, x4 = r["links"]
    for link, alone, loaded, use, saturated in ((x16, 10.1, 6.8, 0.67, False), (x4, 3.3, 3.2, 0.97, True)):
        near(f"GPU {link['gpu']} alone", link["to_device_gbs"]["median"], alone, by=0.01)
        near(f"GPU {link['gpu']} at once", link["together_gbs"], loaded, by=0.04)
        near(f"GPU {link['gpu']} use", link["together_use"], use, by=0.04)
        near(f"GPU {link['gpu']} use in steps", link["traffic_use"], use, by=0.04)
        check(f"GPU {link['gpu']} saturated", link["saturated"], saturated)


def test_verdicts():
    for machine, options, verdict, share, gain in VERDICTS:
        for noise in (None, "noise: 0.004\nseed: 5"):
            what = f"{machine} {' '.join(options)} {noise or ''}"
            env = faults("noise", noise) if noise else None
            done = gv100("handoff", "--virtual", machine, *options, "--json", env=env)
            r = json.loads(done.stdout)
            check(what, r["verdict"], verdict)
            within(f"{what}: share", r["share"], share)
            within(f"{what}: gain", r["gain"], gain)
            words = {"tie": "A tie end to end", "gain": "the direct path pays", "loss": "the host path stays", "no peer": "No direct path"}
            check_in(what, words[verdict], r["sentence"])
            if verdict in ("gain", "loss"):
                check(f"{what}: above the noise", r["above_noise"], True)
    for seed in range(1, 6):
        env = faults("loud", f"noise: 0.15\nseed: {seed}")
        r = json.loads(gv100("handoff", "--virtual", "2x3090", "--bytes", "4M", "--compute-us", "20000", "--json", env=env).stdout)
        check(f"what is lost in the noise is a tie, seed {seed}", (r["verdict"], r["above_noise"]), ("tie", False))
        check_in("and it says so", "within the noise", r["sentence"])
    status = [gv100("handoff", "--virtual", m, *o, "--exit-code").returncode for m, o, *_ in (VERDICTS[4], VERDICTS[6])]
    check("--exit-code", status, [1, 0])


def test_faults():
    small = ["handoff", "--virtual", "2x2080ti", "--bytes", "32M", "--compute-us", "1000"]
    for name, text, words in (
        ("corrupt", "corrupt: [[0, 1]]", "data check from GPU 0 to GPU 1: corrupt"),
        ("one way", "one_way: [[0, 1]]", "refuses peer access from GPU 1 to GPU 0"),
        ("enable", "no_enable: [[1, 0]]", "cannot be enabled (GPU 1 to 0)"),
        ("later", "peer_copies: 7", "peer copy failed with CUDA_ERROR_NOT_SUPPORTED"),
        ("hung", "hung: [[0, 1]]", "hung (nothing arrived: look at ACS and the IOMMU)"),
        ("dead", "dead: [[0, 1]]", "hung (the kernels never ended: look at ACS and the IOMMU)"),
    ):
        for graph in ([], ["--graph"])[: 1 if name == "dead" else 2]:
            done = gv100(*small, *graph, "--json", env=faults(name, text))
            r = json.loads(done.stdout) if done.stdout else {}
            check(f"{name}: status", done.returncode, 0)
            check(f"{name}: verdict", (r.get("verdict"), r.get("peer")), ("no peer", None))
            check_in(f"{name}: said", words, r.get("sentence", ""))
            check(f"{name}: once", done.stderr.count("\n"), 1)
            check(f"{name}: the host's bytes", [ways(r)[m]["data_ok"] for m in (MAPPED, STAGED)], [True, True])
    done = gv100(*small, "--json", env=faults("pinned", "pinned_mib: 180"))
    r = json.loads(done.stdout)
    check("pinned: mapped is not to be had", (ways(r)[MAPPED]["ran"], r["host"], r["verdict"]), (False, STAGED, "gain"))
    done = gv100(*small, "--graph", env=faults("lost", "gpus: [{gpu: 1, lost_after: 60}]"))
    check("lost in a replay: status", (done.returncode, done.stdout), (3, ""))
    check_in("lost in a replay", "GPU 1 failed in the middle of a step", done.stderr)
    check("lost in a replay: the library's line, once", done.stderr.count("no path is left"), 1)
    # A stream takes fewer operations than a sample has: the gate must not wait for the one behind it.
    for options in ([], ["--host-traffic", "--compute-us", "200000"]):
        command = [*small, *options]
        free, full = (gv100_json(*command, env=env) for env in (None, faults("queue", "queue: 100")))
        for method in (MAPPED, STAGED, COPY, READ):
            step = [ways(r)[method]["step_us"]["median"] for r in (free, full)]
            near(f"a short queue {options}, {method}", step[1], step[0], by=0.02)


def test_save():
    done, path = calibrate("saved", "--quick", machine="2x2080ti")
    check("calibrated", done.returncode, 0)
    save = ["handoff", "--virtual", "2x2080ti", "--save", "--profile", path]
    for size, compute in (("16M", "2000"), ("320M", PROMPT_US), ("16M", "1000000")):
        r = gv100_json(*save, "--bytes", size, "--compute-us", compute)
        check("it says where", r["profile"], path)
    with open(path) as text:
        whole = text.read()
    check("an entry for each size, the last one stays", whole.count("verdict:") + whole.count("host_step_us:"), 2)
    check_in("what was measured", "compute_us: 1000000", whole)
    shown = gv100("show", "--profile", path).stdout
    for cells in (("0 to 1", "16M", "1.000 s", "tie"), ("0 to 1", "320M", "14.400 s", "tie")):
        check(f"shown: {cells}", any(all(c in line for c in cells) for line in shown.splitlines()), True)
    kept = {h["bytes"]: h for h in gv100_json("show", "--profile", path)["handoffs"]}
    check("the sizes", sorted(kept), [16 << 20, 320 << 20])
    check("the ways", [(h["host_method"], h["peer_method"], h["data_ok"]) for h in kept.values()], [("mapped", "copy", True)] * 2)
    page = path_of("saved.html")
    check("a page", gv100("show", "--profile", path, "--html", page).returncode, 0)
    with open(page) as text:
        check_in("the page's section", 'id="handoffs"', text.read())
    near("the figures", kept[320 << 20]["peer_us"]["median"], 7154, by=0.01)
    done = gv100("handoff", "--virtual", "4028", "--save", "--profile", "4028")
    check("a real machine's profile gets no virtual figure", done.returncode, 3)
    check_in("and why", "figures are not mixed", done.stderr)
    done = gv100("handoff", "--virtual", "4028", "--save", "--profile", path_of("saved.yaml"))
    check("nor another machine's", done.returncode, 3)


def test_usage():
    for args, status, words in (
        (["--bytes", "10"], 2, "no multiple of 16"), (["--from", "x"], 2, "--from"), (["--samples", "3"], 2, "5 to 32"),
        (["--compute-us", "-1"], 2, "--compute-us"), (["--profile", "4028"], 2, "--save"), (["0"], 2, "--from and --to"),
        (["--virtual", "2x3090", "--to", "2"], 3, "there is no GPU 2"), (["--virtual", "nowhere"], 3, "no virtual machine"),
    ):
        done = gv100("handoff", *args)
        check(f"{args}: status", (done.returncode, done.stdout), (status, ""))
        check_in(f"{args}: words", words, done.stderr)


for test in (test_published, test_verdicts, test_faults, test_save, test_usage):
    test()
finish()
