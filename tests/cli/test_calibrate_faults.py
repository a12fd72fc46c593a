"""Each fault of the virtual machine: the state in the profile, the words, the exit status, and that
nothing is turned on over a pair that is not verified."""

import os

from calibration import calibrate, faults, pair
from gv_cli import check, check_in, finish, gv100, gv100_json

# faults: verify's status and words, calibrate's status and words, the pair, its state, decisions that
# must be default
FAULTS = {
    "corrupt": ("corrupt: [[0, 5]]", 1, "P2P is corrupt", 0, "wrong, from byte", (0, 5), "corrupt", ["0,5", "0-5"]),
    "hung": ("hung: [[4, 5]]", 1, "P2P is hung", 0, "ACS", (4, 5), "hung", ["4,5", "0-5", "0-9"]),
    "dead": ("dead: [[5, 4]]", 1, "P2P is hung", 0, "never ended", (4, 5), "hung", ["4,5", "0-5", "0-9"]),
    "one-way": ("one_way: [[8, 0]]", 1, "P2P is one-way", 0, "not supported", (0, 8), "one-way", ["0,8", "0-9"]),
    "inconclusive": (
        "corrupt: [[0, 5]]\nhost_path_corrupt: 1", 1, "not verified", 0, "not recorded", (0, 5), "unverified", ["0,5", "0-5"],
    ),
    "inside": ("corrupt: [[2, 3]]", 1, "P2P is corrupt", 0, "GPU 2 and 3", (2, 3), "corrupt", []),
    "oom": ("gpus: [{gpu: 6, free_mib: 40}]", 0, "", 0, "GPU 6 (0000:3e:00.0) has only", None, None, []),
    "x4": ("gpus: [{gpu: 2, link_width: 4}]", 0, "", 0, "trained at x4 of x16", None, None, []),
    "throttle": ("gpus: [{gpu: 8, throttle: 0.6}]", 0, "", 0, "thermal slowdown", None, None, []),
    "ecc": ("gpus: [{gpu: 3, ecc_after: 300}]", 0, "", 3, "CUDA_ERROR_ECC_UNCORRECTABLE", None, None, []),
    "lost": ("gpus: [{gpu: 4, lost_after: 300}]", 0, "", 3, "GPU 4 (0000:1e:00.0) failed", None, None, []),
    "ecc-early": ("gpus: [{gpu: 3, ecc_after: 2}]", 3, "ECC", 3, "ECC", None, None, []),
    "in-use": (f"gpus: [{{gpu: 3, user_pid: {os.getpid()}}}]", 3, f"pid {os.getpid()} (", 3, "--force", None, None, []),
    "mig": ("gpus: [{gpu: 3, mig: 1}]", 3, "MIG", 3, "MIG", None, None, []),
    "old-driver": ("cuda_version: 10020", 3, "CUDA 10.2", 3, "11.0", None, None, []),
}


def test_faults():
    for name, (text, v_status, v_words, c_status, c_words, ends, state, default) in FAULTS.items():
        env = faults(name, text + "\n")
        done = gv100("verify", "--virtual", "4028", "--no-stamp", "--pair-timeout", "0.3", env=env)
        check(f"{name}: verify", done.returncode, v_status)
        check_in(f"{name}: verify's words", v_words, done.stderr)
        done, out = calibrate(name, "--pair-timeout", "0.3", env=env)
        check(f"{name}: calibrate", done.returncode, c_status)
        check_in(f"{name}: calibrate's words", c_words, done.stderr)
        check(f"{name}: a profile or none", os.path.exists(out), c_status == 0)
        if c_status:
            continue
        profile = gv100_json("show", "--profile", out)
        if ends:
            states = [pair(profile, *ends)["p2p"], pair(profile, *ends[::-1])["p2p"]]
            check(f"{name}: the pair's state", states, [state, state])
        for gpus in default:
            answer = gv100_json("explain", "--profile", out, "--gpus", gpus)
            edges = [e for e in answer["ring"]["edges"] if {e["from"], e["to"]} == set(ends)]
            check(f"{name}: {gpus} is not turned on over it", [e["transport"] for e in edges], ["SHM"] * len(edges))
        if state == "corrupt":
            answer = gv100_json("explain", "--profile", out, "--gpus", "0-4")
            kinds = [e["kind"] for e in answer["edits"]]
            check(f"{name}: kept apart", kinds, ["separate"] if ends == (2, 3) else [])
        if name == "x4":
            check("x4: width", [g["link_width"] for g in profile["gpus"]][2], 4)
        if name == "throttle":
            runs = [r for g in profile["groups"] if 8 in g["gpus"] for v in g["variants"] for r in v["runs"]]
            check("throttle: samples are marked", all(any(r.get("throttled") or []) for r in runs), True)


# A pair whose own check is right and over which NCCL is wrong: groups, the pair, what explain must
# make of groups that hold it, and a pair of the same ring that stays verified.
NCCL_WRONG = [
    ([4, 5], "0-5;0-9", {"4,5": "default", "0-5": "default"}, (0, 5)),
    ([5, 4], "4,5", {"4,5": "default"}, (0, 5)),
    ([2, 3], "0-4", {"0-4": "mixed"}, (0, 1)),
]


def test_nccl_wrong():
    for number, (ends, groups, decided, innocent) in enumerate(NCCL_WRONG):
        name = f"NCCL {ends}"
        env = faults(f"nccl-{number}", f"nccl_corrupt: [{ends}]\n")
        done, out = calibrate(
            f"nccl-{number}", "--quick", "--only", "p2p,nccl", "--groups", groups, env=env
        )
        check(f"{name}: status", done.returncode, 0)
        check_in(f"{name}: words", "its check is right, NCCL's AllReduce over it is wrong", done.stderr)
        profile = gv100_json("show", "--profile", out)
        states = [pair(profile, *ends)["p2p"], pair(profile, *ends[::-1])["p2p"], pair(profile, *innocent)["p2p"]]
        check(f"{name}: states", states, ["corrupt", "corrupt", "verified"])
        for gpus, transport in decided.items():
            answer = gv100_json("explain", "--profile", out, "--gpus", gpus)
            check(f"{name}: {gpus}", answer["transport"], transport)
            edges = [e for e in answer["ring"]["edges"] if {e["from"], e["to"]} == set(ends)]
            check(f"{name}: {gpus} keeps off it", [e["transport"] for e in edges], ["SHM"] * len(edges))


test_faults()
test_nccl_wrong()
finish()
