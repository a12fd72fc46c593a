"""What a system does to a job: clocks that jump, signals, /dev/shm full in the middle, entries of dead
ranks, process ids that come again, ends while threads are inside, programs with another's rights."""
import os
import shutil
import stat
import subprocess
import sys
import tempfile

BIN, LIB = os.environ["GV_BIN_DIR"], os.environ["GV_LIB_DIR"]
PLUGIN = os.path.join(LIB, "libnccl-tuner-gv100.so")
FULL = os.environ.get("GV_TORTURE_FULL") == "1"
SLOW = int(os.environ.get("GV_SLOW", "1"))
USER = 23456
SKIPPED = 77

failed = []


def check(what, got, want):
    if got != want:
        failed.append(what)
        print(f"FAILED {what}\n    got    {got}\n    wanted {want}")


def usual_environment():
    return {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "GV100_", "LD_PRELOAD"))}


def run(*args):
    done = subprocess.run([os.path.join(BIN, "gv-torture-system"), *map(str, args)],
                          env=usual_environment(), capture_output=True, text=True,
                          timeout=120 * SLOW, check=False)
    if done.returncode == SKIPPED:
        print(f"skipped: {args[0]} (not as this user)")
    else:
        check(f"{args[0]}: {done.stderr[-400:]}", done.returncode, 0)
    for line in done.stdout.splitlines():
        print(f"{args[0]}: {line}")


def contents(folder):
    return sorted(os.path.join(at, name)[len(folder):] for at, folders, files in os.walk(folder)
                  for name in folders + files)


def as_user(program, folder):
    """The program as that user, with every variable of ours set; what it says, and what it made."""
    mine = os.path.join(folder, "mine")
    shutil.rmtree(mine, ignore_errors=True)
    os.mkdir(mine)
    os.chown(mine, USER, USER)
    env = dict(usual_environment(), GV100_LOG=f"{mine}/log", GV100_SHM_DIR=f"{mine}/registry",
               GV100_SYSFS=f"{folder}/sys", GV100_PROFILE="4028", GV100_STAMP=f"{mine}/stamp",
               GV100_PROFILE_DIR=os.environ["GV100_PROFILE_DIR"], GV100_SINGLE_NODE="1",
               GV100_ASSUME_VERIFIED="1", GV100_OPERATIONS="nonsense", LD_PRELOAD=PLUGIN,
               LD_LIBRARY_PATH=LIB, HOME=mine, XDG_CONFIG_HOME=mine)
    done = subprocess.run(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
                           "env", *(f"{k}={v}" for k, v in env.items()), program, "secure", PLUGIN],
                          env=usual_environment(), capture_output=True, text=True, timeout=60,
                          check=False)
    return done.returncode, done.stdout.strip(), contents(mine), done.stderr[-300:]


def other_rights():
    """A program of root's that a user starts: the user's variables choose no file, in or out."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        print("skipped: another user's rights (needs root and setpriv)")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = os.path.join(folder, "program")
        shutil.copy(os.path.join(BIN, "gv-torture-system"), program)
        os.chmod(program, 0o755)
        status, said, made, err = as_user(program, folder)
        check(f"as usual: status {err}", (status, said), (0, "usual"))
        check("as usual: the variables are heard", [f for f in made if f in ("/log", "/registry")],
              ["/log", "/registry"])
        registry = "/dev/shm/gv100-0"
        there = os.path.exists(registry)
        os.chmod(program, 0o755 | stat.S_ISUID)
        status, said, made, err = as_user(program, folder)
        if said == "usual":
            print(f"skipped: another user's rights ({folder} does not give them)")
            return
        check(f"with root's rights: status {err}", (status, said), (0, "secure"))
        check("with root's rights: no file of the user's choice", made, [])
        if not there:
            shutil.rmtree(registry, ignore_errors=True)
        shutil.rmtree(f"/dev/shm/gv100-{USER}", ignore_errors=True)


run("clock")
run("signals")
run("full")
run("stale", 100000 if FULL else 10000)
run("pid")
run("leave", 40 if FULL else 4)
other_rights()
print(f"{len(failed)} failed")
sys.exit(1 if failed else 0)
