"""What another user may have put in the way: as root, with a victim and an attacker of other ids. The
victim's job goes on as without a plan, in time, and nothing of anybody's is written or read."""
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time

BIN = os.environ["GV_BIN_DIR"]
SOURCE = os.environ["GV_SOURCE_DIR"]
SLOW = int(os.environ.get("GV_SLOW", "1"))  # how much longer a sanitizer makes everything
PROFILE = os.path.join(SOURCE, "config", "profiles", "4028.yaml")
VICTIM, ATTACKER = 23456, 23457
BOUND_S, BOUND_MIB = 20, 600

if os.getuid() != 0 or not shutil.which("setpriv"):
    print("skipped: needs root and setpriv")
    sys.exit(77)

failed = []


def check(what, got, want):
    if got != want:
        failed.append(what)
        print(f"FAILED {what}\n    got    {got}\n    wanted {want}")


FOLDER = tempfile.mkdtemp()
os.chmod(FOLDER, 0o1777)  # as /tmp is
HOST = [os.path.join(BIN, "gv-nccl-host"), "--json", "--mode", "processes", "--comm", "0-5"]


def as_user(uid, command, env):
    # a sanitizer's own memory is mapped by the terabyte
    limits = "" if os.environ.get("GV_SANITIZE") else f"ulimit -v {4 * 1024 * 1024}; "
    limits += 'exec "$@"'
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "env",
            *(f"{k}={v}" for k, v in env.items()), "bash", "-c", limits, "bash", *command]


def job(*args, env=None):
    """Its communicator, or None; and how long it took."""
    e = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "GV100_"))}
    e["GV100_PROFILE_DIR"] = os.path.join(SOURCE, "config", "profiles")
    begin = time.monotonic()
    done = subprocess.run(as_user(VICTIM, [*HOST, *args], env or {}), env=e, capture_output=True,
                          text=True, timeout=120 * SLOW, check=False)
    took = time.monotonic() - begin
    lines = done.stdout.splitlines()
    return (json.loads(lines[0]) if lines else {"error": done.stderr[-500:]}), took


def goes_on(what, *args, plan=False, env=None):
    comm, took = job(*args, env=env)
    check(f"{what}: error", comm.get("error"), None)
    check(f"{what}: all ranks alike", comm.get("consistent"), True)
    check(f"{what}: a plan", comm.get("topology_file"), plan)
    check(f"{what}: in time ({took:.1f} s)", took < BOUND_S * SLOW, True)
    return comm


def path(name):
    return os.path.join(FOLDER, name)


def plant(name, text="", mode=0o644, owner=ATTACKER):
    with open(path(name), "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path(name), mode)
    os.chown(path(name), owner, owner)
    return path(name)


def own_folder(name, mode=0o700, owner=VICTIM):
    os.mkdir(path(name), 0o700)
    os.chmod(path(name), mode)
    os.chown(path(name), owner, owner)
    return path(name)


def fifo(name, owner=ATTACKER):
    os.mkfifo(path(name), 0o666)
    os.chmod(path(name), 0o666)
    os.chown(path(name), owner, owner)
    return path(name)


def link(name, to, owner=ATTACKER):
    os.symlink(to, path(name))
    os.lchown(path(name), owner, owner)
    return path(name)


def huge(name, owner=ATTACKER):
    plant(name, owner=owner)
    os.truncate(path(name), 1 << 40)
    return path(name)


goes_on("nothing planted", plan=True)
SECRET = plant("secret", "nobody's business\n", 0o600, VICTIM)
TARGET = own_folder("target")

# --- the registry's folder ---
REGISTRY = [
    ("another user's folder", own_folder("f-theirs", 0o700, ATTACKER)),
    ("another user's, open to all", own_folder("f-open", 0o777, ATTACKER)),
    ("own, open to all", own_folder("f-own-open", 0o777)),
    ("another user's link to a good folder", link("f-link", TARGET)),
    ("a pipe", fifo("f-fifo")),
    ("a file", plant("f-file")),
    ("a device", "/dev/zero"),
]
for what, where in REGISTRY:
    comm = goes_on(f"registry, {what}", env={"GV100_SHM_DIR": where})
    warnings = {l for l in comm.get("log", []) if l.startswith("WARN") and "gv100" in l}
    check(f"registry, {what}: it is said once", len({l.split("GV100_SHM_DIR")[0] for l in warnings}) >= 1, True)
check("nothing was made in the link's target", os.listdir(TARGET), [])
check("nothing was made in another's folder", os.listdir(path("f-open")), [])

# The name that everybody can foresee: /dev/shm/gv100-<uid>.
DEFAULT = f"/dev/shm/gv100-{VICTIM}"
shutil.rmtree(DEFAULT, ignore_errors=True)  # the victim's own, of the jobs above
for what in ("folder", "link", "fifo"):
    if what == "folder":
        os.mkdir(DEFAULT, 0o777)
        os.chown(DEFAULT, ATTACKER, ATTACKER)
    elif what == "link":
        os.symlink(TARGET, DEFAULT)
    else:
        os.mkfifo(DEFAULT, 0o666)
    goes_on(f"the registry's own name is a {what}", env={"GV100_SHM_DIR": ""})
    if what == "folder":
        check("and nothing was put into it", os.listdir(DEFAULT), [])
        os.rmdir(DEFAULT)
    else:
        os.unlink(DEFAULT)

# Entries inside the victim's own folder, left by whoever: swept, or gone around.
inside = own_folder("f-inside")
for name, make in (("c-00-0", lambda p: os.symlink(SECRET, p)), ("c-01-0", os.mkfifo),
                   ("c-02-0", os.mkdir), ("c-03-0", lambda p: os.symlink("/dev/zero", p))):
    make(os.path.join(inside, name))
for i in range(5000):
    with open(os.path.join(inside, f"c-{i:016x}-0"), "wb"):
        pass
    os.chown(os.path.join(inside, f"c-{i:016x}-0"), VICTIM, VICTIM)
goes_on("thousands of stale entries, links and pipes", plan=True, env={"GV100_SHM_DIR": inside})

# --- the verification stamp ---
kept = subprocess.run([HOST[0], "--keep", "--no-plugin", "--comm", "0,1"], capture_output=True,
                      text=True, check=True).stderr.split()[-1]
with open(os.path.join(kept, "verified.yaml"), encoding="utf-8") as f:
    STAMP = f.read()
shutil.rmtree(kept)
DEEP = "a: " + "[" * 20000 + "]" * 20000 + "\n"
ALIASES = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [" + ",".join(["*" + chr(97 + i)] * 9) + "]\n" for i in range(12))
STAMPS = [
    ("the victim's own", plant("s-own", STAMP, 0o600, VICTIM), True),
    ("root's", plant("s-root", STAMP, 0o644, 0), True),
    ("another user's", plant("s-theirs", STAMP), False),
    ("own, writable by all", plant("s-open", STAMP, 0o666, VICTIM), False),
    ("a link to a good one", link("s-link", path("s-own")), False),
    ("a pipe", fifo("s-fifo"), False),
    ("a pipe of the victim's", fifo("s-fifo-own", VICTIM), False),
    ("a terabyte", huge("s-huge", VICTIM), False),
    ("a folder", TARGET, False),
    ("a device", "/dev/zero", False),
    ("deep", plant("s-deep", DEEP, 0o600, VICTIM), False),
    ("aliases", plant("s-aliases", ALIASES, 0o600, VICTIM), False),
]
for what, where, plan in STAMPS:
    goes_on(f"stamp, {what}", "--stamp", where, plan=plan)

# --- the profile ---
with open(PROFILE, encoding="utf-8") as f:
    TEXT = f.read()
PROFILES = [
    ("a pipe", fifo("p-fifo.yaml"), False),
    ("a terabyte", huge("p-huge.yaml"), False),
    ("a device", "/dev/zero", False),
    ("a folder", TARGET + "/", False),
    ("not to be read", plant("p-secret.yaml", TEXT, 0o600), False),
    ("deep", plant("p-deep.yaml", DEEP), False),
    ("aliases", plant("p-aliases.yaml", ALIASES), False),
    ("a link to itself", link("p-loop.yaml", path("p-loop.yaml")), False),
    ("every byte", plant("p-bytes.yaml", "".join(map(chr, range(1, 256))) + TEXT), False),
    ("a name of every letter", plant("p-" + "".join(
        chr(c) for c in range(1, 127) if chr(c) != "/") + ".yaml", "x: y\n"), False),
]
for what, where, plan in PROFILES:
    goes_on(f"profile, {what}", plan=plan, env={"GV100_PROFILE": where})

# --- the topology file ---
LAUGHS = '<!DOCTYPE s [<!ENTITY a "lol">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(12)) + \
    ']><system version="1"><cpu numaid="&m;"/></system>'
OUTSIDE = f'<!DOCTYPE s [<!ENTITY a SYSTEM "file://{SECRET}">]><system version="1"><cpu numaid="&a;"/></system>'
for what, text in (("entities", LAUGHS), ("an entity from outside", OUTSIDE),
                   ("deep", '<system version="1">' + "<cpu>" * 100000)):
    where = plant(f"t-{what.replace(' ', '-')}.xml", text)
    comm, took = job(env={"NCCL_TOPO_FILE": where})
    plain, _ = job("--no-plugin", env={"NCCL_TOPO_FILE": where})
    check(f"topology, {what}: as without the plugin", comm.get("error"), plain.get("error"))
    check(f"topology, {what}: in time", took < BOUND_S * SLOW, True)

# --- the log ---
LOGS = [
    ("a link to the victim's file", link("l-link", SECRET)),
    ("a pipe that nobody reads", fifo("l-fifo")),
    ("another user's file", plant("l-theirs", "theirs\n")),
    ("a folder", TARGET),
    ("in a folder that is not there", path("absent/log")),
    ("a full device", "/dev/full"),
]
for what, where in LOGS:
    goes_on(f"log, {what}", plan=True, env={"GV100_LOG": where})
# One that is read until the first line comes would end the job with SIGPIPE afterwards.
pipe = fifo("l-fifo-read")
reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
goes_on("log, a pipe that somebody reads", plan=True, env={"GV100_LOG": pipe})
check("nothing goes into a pipe", os.read(reader, 100), b"")
os.close(reader)
with open(SECRET, encoding="utf-8") as f:
    check("the victim's file is as it was", f.read(), "nobody's business\n")
with open(path("l-theirs"), encoding="utf-8") as f:
    check("another's file is as it was", f.read(), "theirs\n")
check("the pipe is still one", stat.S_ISFIFO(os.stat(path("l-fifo")).st_mode), True)
check("nothing in the target", os.listdir(TARGET), [])

shutil.rmtree(FOLDER)
shutil.rmtree(DEFAULT, ignore_errors=True)
print(f"{len(failed)} failed")
sys.exit(1 if failed else 0)
