"""libgv-handoff in a program (job.c) on the virtual driver: each way, on streams, captured and as nodes;
each fault with the path, the one line and the bytes that follow from it; mode auto by the profile."""

import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["GV_SOURCE_DIR"], "tests/cli"))
from gv_cli import BIN, SLOW, SOURCE, check, check_in, environment, finish, gv100  # noqa: E402

LIB = os.environ["GV_LIB_DIR"]
FOLDER = tempfile.TemporaryDirectory(prefix="gv-handoff-")
MAPPED, STAGED, COPY, READ = ("host, mapped", "host, staged", "peer copy", "peer read")
METHODS = {MAPPED: ("host", 1), STAGED: ("host", 2), COPY: ("peer", 3), READ: ("peer", 4)}
HOW = ("stream", "capture", "node")

# name, fault, machine, options, the way in use, fell back, words of the one line ("" none)
FAULTS = [
    ("refused", "", "4028", ["--to", "10"], MAPPED, 1, "refuses peer access from GPU 0 to GPU 10"),
    ("one way", "one_way: [[0, 1]]", None, [], MAPPED, 1, "refuses peer access from GPU 1 to GPU 0"),
    ("enable fails", "no_enable: [[0, 1]]", None, [], MAPPED, 1, "cannot be enabled (GPU 0 to 1)"),
    ("enable fails back", "no_enable: [[1, 0]]", None, [], MAPPED, 1, "cannot be enabled (GPU 1 to 0)"),
    ("corrupt", "corrupt: [[0, 1]]", None, [], MAPPED, 1, "data check from GPU 0 to GPU 1: corrupt"),
    ("corrupt back", "corrupt: [[1, 0]]", None, [], MAPPED, 1, "data check from GPU 1 to GPU 0: corrupt"),
    ("corrupt, read", "corrupt: [[0, 1]]", None, ["--method", "4"], MAPPED, 1, "corrupt"),
    ("hung", "hung: [[0, 1]]", None, [], MAPPED, 1, "nothing arrived"),
    ("no memory", "gpus: [{gpu: 1, free_mib: 1}]", None, ["--bytes", "524288", "--slots", "4"], MAPPED, 1, "OUT_OF_MEMORY"),
    ("fails later", "peer_copies: 4", None, [], MAPPED, 1, "peer copy failed with CUDA_ERROR_NOT_SUPPORTED"),
    ("no pinned memory", "pinned_mib: 7", None, ["--mode", "host", "--bytes", "1048576", "--steps", "2", "--slots", "4"],
     STAGED, 0, "host, mapped is not to be had for 1048576 bytes (CUDA_ERROR_OUT_OF_MEMORY)"),
    ("no pinned memory later", "pinned_mib: 7\npeer_copies: 2", None, ["--bytes", "1048576", "--steps", "2", "--slots", "4"],
     STAGED, 1, "NOT_SUPPORTED; host, mapped is not to be had"),
]


def job(*args, fault="", machine="2x2080ti", program="gv-handoff-job", **more):
    env = environment(GV_VIRTUAL_MACHINE=f"{SOURCE}/testbench/machines/{machine}/machine.yaml", GV_VIRTUAL_CAP="16777216", **more)
    if fault:
        env["GV_VIRTUAL_FAULTS"] = os.path.join(FOLDER.name, "faults.yaml")
        with open(env["GV_VIRTUAL_FAULTS"], "w") as out:
            out.write(fault + "\n")
    done = subprocess.run(
        [os.path.join(BIN, program), "--driver", f"{LIB}/virtual/libcuda.so.1", *args],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120 * SLOW, check=False,
    )
    check(f"{args}: nothing on stderr", done.stderr, "")
    return json.loads(done.stdout)


def right(what, got):
    check(f"{what}: bytes", (got.get("wrong"), got.get("units"), got.get("leaked")), (0, 0, 0))


def test_ways():
    for method, (mode, number) in METHODS.items():
        for how in HOW:
            for size, slots, steps in ((65536, 2, 5), (16, 1, 3), (1 << 20, 3, 4), (9 << 20, 2, 2)):
                if size > 1 << 20 and how != "stream":
                    continue
                what = f"{method}, {how}, {size} bytes, {slots} slots"
                got = job("--mode", mode, "--method", str(number), "--how", how, "--bytes", str(size),
                          "--slots", str(slots), "--steps", str(steps), "--rounds", "3")
                check(what, (got["method"], got["fell_back"], got["lines"]), (method, 0, 0))
                right(what, got)


def test_program():
    """What the program had on stays on; its producer may write to the library's buffer; one GPU is enough."""
    got = job("--mode", "peer", "--enabled", "1")
    check("already enabled", (got["method"], got["still_enabled"]), (COPY, 1))
    for method, (mode, number) in METHODS.items():
        got = job("--mode", mode, "--method", str(number), "--target", "1")
        right(f"{method}, written in place", got)
        for how in HOW:
            got = job("--mode", mode, "--method", str(number), "--to", "0", "--how", how)
            check(f"one GPU, {method}", got["method"], method)
            right(f"one GPU, {method}, {how}", got)
    got = job("--mode", "peer", program="gv-handoff-job-static")
    check("static", got["method"], COPY)
    got = job("--mode", "peer", "--how", "capture", "--enabled", "1", fault="one_way: [[0, 1]]\nnoise: 0.1")
    check("peer access of the program cannot be had", got["failed"], "peer access")


def test_faults():
    for name, fault, machine, options, method, fell_back, words in FAULTS:
        mode = [] if "--mode" in options else ["--mode", "peer"]
        for how in HOW[:1] if name == "fails later" or "later" in name else HOW:
            got = job(*mode, *options, "--how", how, fault=fault, machine=machine or "2x2080ti")
            what = f"{name}, {how}"
            check(what, (got.get("method"), got.get("fell_back"), got["lines"]), (method, fell_back, 1))
            check_in(what, words, got.get("line", ""))
            right(what, got)
    got = job("--mode", "peer", "--how", "capture", fault="peer_copies: 3")
    check("fails in a capture", (got["method"], got["recaptured"], got["lines"]), (MAPPED, 1, 1))
    right("fails in a capture", got)
    got = job("--bytes", "1048576", "--steps", "2", "--slots", "4", fault="pinned_mib: 4")
    check("no pinned memory at all", (got["failed"], got["lines"]), ("create", 0))
    check_in("no pinned memory at all", "no pinned host memory", got["text"])


def test_options():
    for options, words in (
        (["--bytes", "8"], "multiple of 16"), (["--bytes", "100"], "multiple of 16"), (["--slots", "9"], "1 to 8"),
        (["--method", "3"], "not of the mode's path"), (["--mode", "peer", "--method", "1"], "not of the mode's path"),
        (["--mode", "auto", "--method", "1"], "not of the mode's path"),
    ):
        got = job(*options, "--steps", "1")
        check(f"{options}", got["failed"], "create")
        check_in(f"{options}", words, got["text"])


def sysfs(machine):
    folder = os.path.join(FOLDER.name, "sysfs-" + machine)
    os.makedirs(folder)
    subprocess.run([os.path.join(BIN, "gv-sysfs"), machine, folder], check=True)
    return folder


def test_auto():
    """The peer path by itself only for a saved gain of about that size, on the pair, verified."""
    profile, other = os.path.join(FOLDER.name, "p.yaml"), os.path.join(FOLDER.name, "q.yaml")
    gv100("calibrate", "--virtual", "2x2080ti", "--quick", "-o", profile)
    root = sysfs("2x2080ti")

    def auto(what, wanted, words, size="1048576", path=profile, **more):
        got = job("--mode", "auto", "--bytes", size, "--steps", "2", "--profile", path, GV100_SYSFS=root, **more)
        check(f"auto, {what}", (got["method"], got["lines"], got["fell_back"]), (wanted, 0, 0))
        check_in(f"auto, {what}", words, got["reason"])
        right(f"auto, {what}", got)

    auto("nothing measured", MAPPED, "has no hand-off of about this size")
    auto("no profile", MAPPED, "no profile to go by", path="/nonexistent/p.yaml")
    save = ["handoff", "--virtual", "2x2080ti", "--save", "--profile", profile]
    check("saved", gv100(*save, "--bytes", "1M").returncode, 0)
    auto("gain", COPY, "a step gains 9")
    auto("twice as large", COPY, "gains", size="2097152")
    auto("larger still", MAPPED, "no hand-off of about this size", size="2097168")
    with open(profile) as text:
        whole = text.read()
    with open(other, "w") as out:
        out.write(whole.replace("data_ok: true", "data_ok: false"))
    auto("not checked", MAPPED, "not verified", path=other)
    with open(other, "w") as out:
        out.write(whole.replace("p2p: verified", "p2p: unverified"))
    auto("pair not verified", MAPPED, "not verified", path=other)
    with open(other, "w") as out:
        without = re.sub("^policy:\n(  .*\n)*", "", whole, flags=re.M)
        out.write(without.replace("complete: true", "policy:\n  min_gain: 0.99\ncomplete: true"))
    auto("less than min_gain", MAPPED, "less than min_gain", path=other)
    check("saved a tie", gv100(*save, "--bytes", "1M", "--compute-us", "1000000").returncode, 0)
    auto("tie", MAPPED, "the profile says tie")


for test in (test_ways, test_program, test_faults, test_options, test_auto):
    test()
finish()
