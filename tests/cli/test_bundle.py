"""A bundle holds what a replay needs, and nothing of whom it comes from."""

import os
import socket
import subprocess
import tarfile
import tempfile

from gv_cli import check, check_in, environment, finish, gv100, gv100_json, sysfs

LOG = """vm:1:1 [0] NCCL INFO Bootstrap: Using eth0:10.20.30.40<0>
vm:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda13.0
AWS_SECRET_KEY=abc123 and 1a:00.0 and 0000:1a:00.0 and fe80::1234:5678%eth0
again 10.20.30.40, other 10.20.30.41, GPU-12345678-1234-1234-1234-123456789012
"""
# what must be gone, what must be there instead or still
LEFT_OUT = ["10.20.30.40", "abc123", "fe80::1234", "GPU-12345678"]
KEPT = [
    "2.28.9+cuda13.0", "0000:1a:00.0", "1a:00.0", "AWS_SECRET_KEY=(left out)",
    "eth0:192.0.2.1<0>", "again 192.0.2.1, other 192.0.2.3", "2001:db8::", "GPU-00000000-0000-0000-0000-",
]  # fmt: skip


def bundle(folder, root, *args):
    log = os.path.join(folder, "nccl.log")
    with open(log, "w", encoding="utf-8") as f:
        f.write(LOG + f"on {socket.gethostname()} in {folder}/home/x\n")
    env = environment(GV100_SYSFS=root, HOME=os.path.join(folder, "home"), TMPDIR=folder)
    out = os.path.join(folder, "b.tar")
    return gv100("bundle", "-o", out, "--log", log, *args, env=env), out


def test_content(folder):
    root = sysfs()
    done, out = bundle(folder, root, "--yes")
    check("status", (done.returncode, done.stderr), (0, ""))
    check_in("it is shown", "nccl.log", done.stdout)
    with tarfile.open(out) as tar:
        names = [n.removeprefix("./") for n in tar.getnames()]
        text = {n.removeprefix("./"): tar.extractfile(n).read().decode() for n in tar.getnames() if n.endswith((".log", ".json", ".yaml"))}
        check("owner", {(m.uid, m.gid, m.uname) for m in tar.getmembers()}, {(0, 0, "")})
    for name in ("profile.yaml", "doctor.json", "nccl.log", "version.txt", "sysfs/module/nvidia/version"):
        check(f"{name} is in it", name in names, True)
    for word in LEFT_OUT:
        check(f"{word} is left out", word in text["nccl.log"], False)
    for word in KEPT:
        check_in("kept or replaced", word, text["nccl.log"])
    host = socket.gethostname()
    if len(host) > 1 and host != "localhost":
        check("host's name", any(f" {host} " in t for t in text.values()), False)
    check("home folder", any(f"{folder}/home" in t for t in text.values()), False)


def test_replay(folder):
    """The same decision elsewhere, from the archive alone."""
    root = sysfs()
    _, out = bundle(folder, root, "--yes")
    here = gv100_json("explain", "--gpus", "0-5", env=environment(GV100_SYSFS=root))
    there = gv100_json("explain", "--machine", out, "--gpus", "0-5", env=environment(GV100_PROFILE_DIR="/nonexistent"))
    for key in ("gpus", "transport", "edits", "evidence", "gain", "ring"):
        check(key, there[key], here[key])
    before = {n for n in os.listdir("/tmp") if n.startswith("gv100-replay-")}
    gv100("explain", "--machine", out, "--gpus", "0-5")
    check("nothing is left", {n for n in os.listdir("/tmp") if n.startswith("gv100-replay-")} - before, set())


def test_name_with_a_time(folder):
    """For tar a colon before any slash names another host."""
    env = environment(GV100_SYSFS=sysfs(), TMPDIR=folder)
    done = gv100("bundle", "-y", "-o", "12:30.tar", env=env, cwd=folder)
    check("written", (done.returncode, done.stderr), (0, ""))
    done = gv100("explain", "-m", "12:30.tar", "-g", "0-5", cwd=folder)
    check("read", (done.returncode, done.stderr), (0, ""))


def test_asks(folder):
    root = sysfs()
    done, out = bundle(folder, root)
    check("not without a yes", (done.returncode, os.path.exists(out)), (2, False))
    check_in("and says so", "--yes", done.stdout)
    done, out = bundle(folder, root, "--dry-run")
    check("dry run", (done.returncode, os.path.exists(out)), (0, False))


def test_bad_archives(folder):
    bad = os.path.join(folder, "bad.tar")
    with open(bad, "w", encoding="utf-8") as f:
        f.write("no archive")
    done = gv100("explain", "--machine", bad, "--gpus", "0-5")
    check("no archive", done.returncode, 3)
    check_in("no archive", "is no bundle", done.stderr)
    os.makedirs(os.path.join(folder, "x/sysfs/bus/pci/devices"))
    os.symlink("/etc", os.path.join(folder, "x/sysfs/bus/pci/devices/0000:00:00.0"))
    subprocess.run(["tar", "-C", os.path.join(folder, "x"), "-cf", bad, "."], check=True)
    check_in("a link that leads out", "leads out of it", gv100("explain", "--machine", bad, "--gpus", "0-5").stderr)


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        with tempfile.TemporaryDirectory() as work:
            test(os.path.realpath(work))
finish()
