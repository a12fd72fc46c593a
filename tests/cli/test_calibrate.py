"""`gv100 calibrate` and `verify` on the virtual reference machine: from nothing to the published figures
and decisions; stopped and resumed; the plan; bad input."""

import ctypes
import os
import resource
import signal
import subprocess
import tempfile
import time

from calibration import GROUPS, OWN, check_groups, check_memory, check_pairs, decisions, near, path_of, profile_of
from gv_cli import BIN, SLOW, check, check_in, environment, finish, gv100, gv100_json


def in_time(begin):
    """Under a minute, where nobody else uses the processors."""
    return time.monotonic() - begin < 60 or os.getloadavg()[0] > 2 * os.cpu_count()


def test_reference():
    begin = time.monotonic()
    profile, out, done = profile_of("reference")
    check("under 60 s", time.monotonic() - begin < 60 * SLOW, True)
    if SLOW == 1:  # a sanitizer has memory of its own
        check("under 256 MiB", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 256 << 10, True)
    check("no warning", done.stderr, "")
    check("virtual", profile["provenance"]["kind"], "virtual")
    check_memory(profile)
    check_pairs(profile)
    check_groups(profile)
    check("decisions", decisions(out), decisions("4028"))
    with open(out) as f:
        check("modelled uplinks are told, for two groups of two variants", f.read().count("a model's uplinks"), 4)


def nccl_groups(profile):
    """Default and best plan of AllReduce at 1 GiB, by NCCL."""
    found = {}
    for g in profile["groups"]:
        if (g["operation"], g["bytes"]) == ("AllReduce", 1 << 30):
            medians = {v["edit"]: v["busbw_gbs"]["median"] for v in g["variants"] if v.get("algorithm") in (None, "any")}
            found[tuple(g["gpus"])] = (medians.pop("none"), max(medians.values(), default=None))
    return found


def test_full():
    """All of it, NCCL too."""
    out = path_of("full-run.yaml")
    begin = time.monotonic()
    done = gv100("calibrate", "--virtual", "4028", "-o", out, timeout=280)
    check("full run: under 60 s", time.monotonic() - begin < 60 * SLOW, True)
    check("full run", (done.returncode, done.stderr), (0, ""))
    profile = gv100_json("show", "--profile", out)
    check_memory(profile)
    check_pairs(profile)
    got = nccl_groups(profile)
    check("full run: the published groups", sorted(got), sorted(GROUPS))
    for gpus, (default, p2p) in GROUPS.items():
        near(f"NCCL over {gpus}", got[gpus][0], default, 0.03)
        if p2p and p2p > default:
            near(f"NCCL over {gpus}, P2P", got[gpus][1], p2p, 0.03)
    wanted = {gpus: answer[0] for gpus, answer in decisions("4028").items()}
    check("full run: decisions", {gpus: answer[0] for gpus, answer in decisions(out).items()}, wanted)


def test_resume_and_interrupt():
    out = path_of("stopped.yaml")
    with open(out, "w") as old:
        old.write("an old profile\n")
    command = [os.path.join(BIN, "gv100"), "calibrate", "--virtual", "4028", "-o", out, "--only", OWN]
    for wait in (0.8, 0.4, 1.6, 0.2, 3.2, 0.1, 6.4, 12.8):  # neither before the first figure nor after the last
        child = subprocess.Popen(
            command, env=environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        time.sleep(wait)
        child.send_signal(signal.SIGINT)
        words = child.communicate(timeout=60 * SLOW)[1]
        if child.returncode and os.path.exists(out + ".partial"):
            break
        with open(out, "w") as old:
            old.write("an old profile\n")
    check("stopped: status", child.returncode, 3)
    check_in("stopped: says how to go on", "--resume", words)
    check("stopped: the old profile is as it was", open(out).read(), "an old profile\n")
    done = gv100("calibrate", "--virtual", "4028", "-o", out, "--only", OWN, "--resume")
    check("resumed", (done.returncode, done.stderr), (0, ""))
    check("resumed: nothing is left behind", os.path.exists(out + ".partial"), False)
    profile = gv100_json("show", "--profile", out)
    check("resumed: whole", (len(profile["memory"]), len(profile["groups"])), (11, 10))
    check_pairs(profile)


def test_plan():
    plan = gv100_json("calibrate", "--virtual", "4028", "--dry-run")
    check("at most ten minutes", plan["seconds"] <= 600, True)
    short = gv100_json("calibrate", "--virtual", "4028", "--dry-run", "--budget", "90s")
    left = [i["what"] for i in short["items"] if i["left_out"]]
    check("budget fits", (short["seconds"] <= 90, bool(left)), (True, True))
    check("the check of the pairs stays", [w for w in left if w.startswith("check")], [])
    quick = gv100_json("calibrate", "--virtual", "4028", "--dry-run", "--quick")
    check("quick is under a minute", quick["seconds"] <= 60, True)
    only = gv100_json("calibrate", "--virtual", "4028", "--dry-run", "--only", "hbm")
    check("only", {i["probe"] for i in only["items"]}, {"memory"})
    groups = gv100_json("calibrate", "--virtual", "4028", "--dry-run", "--only", "ring", "--groups", "0,5;0-2")
    check("groups", [i["what"] for i in groups["items"]], ["ring AllReduce over 0,5", "ring AllReduce over 0-2"])
    profile, _, _ = profile_of("quick", "--quick")
    check("quick: groups", len(profile["groups"]), 8)


def test_stamp():
    stamp = path_of("stamp.yaml")
    answer = gv100_json("verify", "--virtual", "4028", "--stamp", stamp)
    check("verify counts", (answer["ok"], answer["counts"]["verified"], answer["counts"]["refused"]), (True, 45, 10))
    check("verify: NCCL itself", (answer["nccl"]["verdict"], answer["nccl"]["version"]), ("right", 22809))
    check("a stamp", (answer["stamp"], os.path.exists(stamp)), (stamp, True))


def test_no_room_for_the_file():
    """A write that fails in the middle, as on a full disk."""
    out = path_of("full.yaml")
    with open(out, "w") as old:
        old.write("an old profile\n")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (36 << 10, 36 << 10))  # more than is tried, less than is written

    done = gv100(
        "calibrate", "--virtual", "4028", "--only", "p2p", "-o", out, preexec_fn=limit, restore_signals=False
    )
    check("full: status", done.returncode, 3)
    check_in("full: words", "full.yaml", done.stderr)
    check("full: the old profile is as it was", open(out).read(), "an old profile\n")
    left = [f for f in os.listdir(os.path.dirname(out)) if f.startswith("full") and f != "full.yaml"]
    check("full: at most what was found before", [f for f in left if f != "full.yaml.partial"], [])
    for partial in left:  # after five seconds there is one
        shown = gv100("show", "--profile", path_of(partial))
        check("full: nothing half written", (shown.returncode, shown.stderr), (0, ""))


BAD = [
    # arguments, environment, status, words
    (["--virtual", "4029"], {}, 3, "no virtual machine '4029'"),
    (["--virtual", "./none.yaml"], {}, 3, "none.yaml"),
    (["--virtual", "4028", "--only", "hmb"], {}, 2, "'hmb' is none of"),
    (["--virtual", "4028", "--groups", "0"], {}, 2, "fewer than two"),
    (["--virtual", "4028", "--groups", "0-12"], {}, 2, "only 11 GPUs"),
    (["--virtual", "4028", "--budget", "soon"], {}, 2, "'soon' is no time"),
    (["--virtual", "4028", "--budget", "nan"], {}, 2, "'nan' is no time"),
    (["--virtual", "4028", "--pair-timeout", "inf"], {}, 2, "'inf' is no time"),
    (["--virtual", "4028", "--only", ""], {}, 2, "'' is none of"),
    (["--virtual", "4028", "--groups", ""], {}, 2, "no group is named"),
    (["--virtual", "4028", "--groups", "0" + " " * 300 + ",1"], {}, 2, "longer than any list"),
    (["--virtual", "4028", "--trace", "left", "--budget", "soon"], {}, 2, "'soon' is no time"),
    (["--virtual", "4028", "--trace", "/nonexistent/x"], {}, 3, "/nonexistent/x: cannot be written"),
    (["--virtual", "4028", "--memory", "1M"], {}, 2, "64M"),
    (["--virtual", "4028", "-o", "/nonexistent/x.yaml"], {}, 3, "nothing was measured"),
    (["--virtual", "4028"], {"CUDA_VISIBLE_DEVICES": "junk"}, 3, 'CUDA_VISIBLE_DEVICES="junk"'),
    (["--virtual", "4028"], {"CUDA_VISIBLE_DEVICES": "0,1"}, 3, "has 11 GPUs and CUDA shows 2"),
    (["--virtual", "4028", "--resume"], {}, 3, ".partial"),
    ([], {}, 3, "no CUDA driver"),
    (["--virtual", "4028"], {"CUDA_VISIBLE_DEVICES": ""}, 3, 'CUDA_VISIBLE_DEVICES=""'),
    (["--virtual", "4028"], {"CUDA_VISIBLE_DEVICES": "-1,0"}, 3, 'CUDA_VISIBLE_DEVICES="-1,0"'),
    (["--virtual", "4028"], {"CUDA_VISIBLE_DEVICES": "0,junk,2"}, 3, "has 11 GPUs and CUDA shows 1"),
    (["--virtual", "4028"], {"faults": "init: 100"}, 3, "finds no GPU"),
    (["--virtual", "4028"], {"faults": "init: 999"}, 3, "does not start (cuInit)"),
    (["--virtual", "4028"], {"faults": "cuda_version: 10020"}, 3, "CUDA 10.2 only: install one with CUDA 11.0"),
    (["--virtual", "4028"], {"faults": "gpus: [{gpu: 3, mig: 1}]"}, 3, "GPU 3 (0000:1d:00.0) is in MIG mode"),
    (["--virtual", "4028", "-o", "/proc/x.yaml"], {}, 3, "nothing was measured"),
    (["--virtual", "4028", "-o", "/"], {}, 3, "is no regular file; nothing was measured"),
]


def has_driver():
    try:
        return bool(ctypes.CDLL("libcuda.so.1"))
    except OSError:
        return False


def test_bad_input():
    for args, more, status, words in BAD:
        if not args and has_driver():
            continue  # it would measure
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w", suffix=".yaml") as broken:
            if "faults" in more:
                print(more["faults"], file=broken, flush=True)
                more = {"GV_VIRTUAL_FAULTS": broken.name}
            done = gv100("calibrate", *args, env=environment(**more), cwd=folder)
            check(f"{args} {more} status", done.returncode, status)
            check_in(f"{args} {more} words", words, done.stderr)
            check(f"{args} {more} stdout", done.stdout, "")
            check(f"{args} {more} leaves nothing", os.listdir(folder), [])


def as_nobody():
    """Root may open everything."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def test_no_permission():
    """The driver says that there is no GPU, or nothing; the device files say who may not."""
    for name, code in (("nvidiactl", 100), ("nvidia0", 100), ("nvidia10", 999), ("nvidia-uvm", 999)):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            os.mkdir(os.path.join(folder, "work"), 0o777)
            os.chmod(os.path.join(folder, "work"), 0o777)
            for node in ("nvidiactl", "nvidia0", "nvidia10", "nvidia-uvm"):
                with open(os.path.join(folder, node), "w"):
                    pass
                os.chmod(os.path.join(folder, node), 0 if node == name else 0o666)
            with open(os.path.join(folder, "faults"), "w") as out:
                print(f"init: {code}", file=out)
            env = environment(
                GV100_DEV=folder, GV_VIRTUAL_FAULTS=os.path.join(folder, "faults"),
                TMPDIR=os.path.join(folder, "work"),
            )
            done = gv100(
                "calibrate", "--virtual", "4028", env=env, cwd=os.path.join(folder, "work"), preexec_fn=as_nobody
            )
            check(f"{name}: status", done.returncode, 3)
            check_in(f"{name}: which", f"{name} cannot be opened for reading and writing by ", done.stderr)
            check_in(f"{name}: what it is", "mode 0000. Run as a user who may use the GPUs", done.stderr)
            check(f"{name}: leaves nothing", os.listdir(os.path.join(folder, "work")), [])


def test_read_only_and_full():
    """File systems of a mount namespace of its own, where this user may make one."""
    for name, mount, words in (
        ("read-only", "mount -t tmpfs -o size=16m none . && mount -o remount,ro .", "Read-only file system"),
        ("full", "mount -t tmpfs -o size=16k none .", "No space left on device"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            inside = f'{mount} || exit 77; cd {folder}; "$0" calibrate --virtual 4028 -o x.yaml; code=$?; ls -A; exit $code'
            done = subprocess.run(
                ["unshare", "-m", "-r", "sh", "-c", inside, os.path.join(BIN, "gv100")], env=environment(), cwd=folder,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
            )
            if done.returncode in (1, 77, 127):  # no namespaces here
                print(f"{name} file system: not tried: {done.stderr.strip()}")
                continue
            check(f"{name}: status", (done.returncode, done.stdout), (3, ""))
            check_in(f"{name}: words", words + "; nothing was measured", done.stderr)


test_bad_input()
test_no_permission()
test_read_only_and_full()
test_plan()
test_stamp()
test_no_room_for_the_file()
test_reference()
test_full()
test_resume_and_interrupt()
finish()
