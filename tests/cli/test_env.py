"""Which variable for which NCCL, and how that NCCL is found. The libraries are made here: the
command reads them, it never runs them."""

import os
import stat
import struct
import subprocess
import tempfile

from gv_cli import check, check_in, environment, finish, gv100, gv100_json

PLUGIN = os.path.realpath("/bin/sh")  # any file: env only names it
VARIABLES = [
    ("2.19.3", "LD_PRELOAD"),
    ("2.23.4", "LD_PRELOAD"),
    ("2.27.3", "LD_PRELOAD"),
    ("2.28.6", "LD_PRELOAD"),
    ("2.28.7", "NCCL_ENV_PLUGIN"),
    ("2.28.9", "NCCL_ENV_PLUGIN"),
    ("2.30.7-1", "NCCL_ENV_PLUGIN"),
    ("2.32.3+cuda13.0", "NCCL_ENV_PLUGIN"),
]


def library(path, text, sections=True):
    """A 64-bit ELF file whose constants hold `text`. A decoy with another release stands outside
    of them, as GPU code may."""
    names = b"\0.rodata\0.shstrtab\0"
    decoy = b"NCCL version 9.9.9\0"
    constants = b"Mismatched NCCL version detected\0" + text.encode() + b"\0"
    at = 64 + len(decoy)
    table = (at + len(constants) + len(names) + 7) // 8 * 8

    def section(name, kind, offset, size):
        return struct.pack("<IIQQQQIIQQ", name, kind, 2, 0, offset, size, 0, 0, 1, 0)

    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, table if sections else 0, 0, 64, 56, 0, 64,
        3 if sections else 0, 2 if sections else 0,
    )  # fmt: skip
    body = head + (decoy if sections else bytes(len(decoy))) + constants + names
    body += bytes(table - len(body)) + bytes(64)
    body += section(1, 1, at, len(constants)) + section(9, 3, at + len(constants), len(names))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(body)
    return path


def script(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def env_of(folder, **more):
    """A PATH with a python3 that has no NCCL, unless the test makes one."""
    python = os.path.join(folder, "python3")
    if not os.path.exists(python):
        script(python, "#!/bin/sh\nexit 0\n")
    return environment(GV100_PLUGIN=PLUGIN, PATH=f"{folder}:/usr/bin:/bin", **more)


def test_versions(folder):
    for release, variable in VARIABLES:
        got = gv100_json("env", "--nccl", release, env=env_of(folder))
        check(f"{release} variable", (got["variable"], got["value"]), (variable, PLUGIN))
        check(f"{release} set", got["set"], {variable: PLUGIN})


def test_binaries(folder):
    rows = [
        # constants, file name, section table, release
        ("NCCL version 2.28.9+cuda13.0", "libnccl.so.2", True, "2.28.9"),
        ("NCCL version 2.27.5+cuda12.4", "libnccl.so.2", True, "2.27.5"),
        ("NCCL version 2.27.5+cuda12.4", "libnccl.so.2", False, "2.27.5"),
        ("no such text", "libnccl.so.2.23.4", True, "2.23.4"),
        ("no such text", "libnccl.so.2", True, None),
    ]
    for i, (text, name, sections, release) in enumerate(rows):
        path = library(os.path.join(folder, str(i), name), text, sections)
        got = gv100_json("env", "--nccl", path, env=env_of(folder))
        check(f"row {i} release", (got["nccl"]["version"], got["nccl"]["path"]), (release, path))
    both = {"LD_PRELOAD": PLUGIN, "NCCL_ENV_PLUGIN": PLUGIN}
    check("release not known: both ways in", (got["variable"], got["set"]), (None, both))


def test_search(folder):
    """Python's own NCCL counts before the loader's, as torch's run path does."""
    site = os.path.join(folder, "site")
    own = library(f"{site}/nvidia/nccl/lib/libnccl.so.2", "NCCL version 2.27.5+cuda12.8")
    other = library(f"{folder}/lib/libnccl.so.2", "NCCL version 2.28.9+cuda13.0")
    env = env_of(folder, LD_LIBRARY_PATH=f"{folder}/lib")
    got = gv100_json("env", env=env)
    check("the loader's", (got["nccl"]["path"], got["nccl"]["found_by"]), (other, "the loader"))
    script(os.path.join(folder, "python3"), f"#!/bin/sh\necho\necho {site}\n")
    got = gv100_json("env", env=env)
    check("python's", (got["nccl"]["path"], got["nccl"]["found_by"]), (own, "python3"))
    check("variable", got["variable"], "LD_PRELOAD")
    check_in("the other is named", other, [o["path"] for o in got["others"]])
    check_in("its variable differs", "needs another variable", gv100("env", env=env).stdout)
    launcher = script(os.path.join(folder, "launch"), f"#!{folder}/python3\n")
    got = gv100_json("env", launcher, env=env)
    check("a script's Python", got["nccl"]["path"], own)


def test_shell(folder):
    """What is printed can be evaluated, blanks in the path and an older LD_PRELOAD included."""
    odd = os.path.join(folder, "o'd d")
    os.makedirs(odd)
    plugin = script(os.path.join(odd, "plugin.so"), "")
    env = env_of(folder)
    env["GV100_PLUGIN"] = plugin
    text = gv100("env", "--nccl", "2.28.9", env=env).stdout
    out = subprocess.check_output(["sh", "-c", text + 'printf %s "$NCCL_ENV_PLUGIN"'], text=True)
    check("path survives the shell", out, plugin)
    done = gv100("env", "--nccl", "2.27.3", env=env)
    check("a blank cannot be in LD_PRELOAD", done.returncode, 3)
    check_in("and it says so", "LD_PRELOAD cannot hold", done.stderr)
    text = gv100("env", "--nccl", "2.27.3", env=env_of(folder)).stdout
    out = subprocess.check_output(
        ["sh", "-c", "LD_PRELOAD=libm.so.6\n" + text + 'echo "$LD_PRELOAD"'], text=True
    )
    check("LD_PRELOAD is extended", out.strip(), f"{PLUGIN}:libm.so.6")


def test_snippets(folder):
    env = env_of(folder)
    check_in("slurm", "export NCCL_ENV_PLUGIN=", gv100("env", "--nccl", "2.28.9", "--slurm", env=env).stdout)
    check_in("mpirun", "mpirun -x LD_PRELOAD", gv100("env", "--nccl", "2.27.3", "--slurm", env=env).stdout)
    pod = gv100("env", "--nccl", "2.28.9", "--k8s", env=env).stdout
    check_in("k8s variable", "{name: NCCL_ENV_PLUGIN, value: /opt/gv100/libnccl-tuner-gv100.so}", pod)
    check_in("k8s mount", f'path: "{PLUGIN}"', pod)


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        with tempfile.TemporaryDirectory() as work:
            test(os.path.realpath(work))
finish()
