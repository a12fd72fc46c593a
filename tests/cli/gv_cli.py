"""What the tests of the command share: where things are, running it, comparing."""

import difflib
import json
import os
import subprocess
import sys
import tempfile

BIN = os.environ.get("GV_BIN_DIR") or sys.exit("GV_BIN_DIR is not set: run the tests with ctest")
SOURCE = os.environ["GV_SOURCE_DIR"]
SLOW = int(os.environ.get("GV_SLOW", "1"))  # how much longer a sanitizer makes everything
FAILURES = []


def environment(**more):
    """The test's own environment: nothing of the caller's decides a result."""
    keep = ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS")
    env = {name: os.environ[name] for name in keep if name in os.environ}
    env.update(LC_ALL="C.UTF-8", NO_COLOR="1", HOME="/nonexistent")
    env["GV100_PROFILE_DIR"] = os.environ["GV100_PROFILE_DIR"]
    env.update({name: value for name, value in more.items() if value is not None})
    return env


def gv100(*args, env=None, **how):
    """Runs the command; the result has returncode, stdout and stderr as text."""
    how["timeout"] = how.get("timeout", 120) * SLOW
    how.setdefault("stdout", subprocess.PIPE)
    return subprocess.run(
        [os.path.join(BIN, "gv100"), *args],
        env=env or environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        **how,
    )


def gv100_json(*args, **how):
    done = gv100(*args, "--json", **how)
    if done.stderr:
        check(f"{' '.join(args)}: nothing on stderr", done.stderr, "")
    return json.loads(done.stdout)


def sysfs(machine="4028"):
    """A sysfs tree of a machine of the testbench; removed when the test ends."""
    folder = tempfile.TemporaryDirectory(prefix="gv-sysfs-")
    KEPT.append(folder)
    subprocess.run([os.path.join(BIN, "gv-sysfs"), machine, folder.name], check=True)
    return folder.name


KEPT = []


def difference(got, wanted):
    if isinstance(got, str) and isinstance(wanted, str) and "\n" in got + wanted:
        lines = difflib.unified_diff(wanted.split("\n"), got.split("\n"), "wanted", "got", "", "", 1)
        return "\n".join("   " + line.rstrip("\n") for line in lines)
    return f"   got    {got!r}\n   wanted {wanted!r}"


def check(what, got, wanted):
    if got != wanted:
        FAILURES.append(what)
        print(f"FAILED {what}\n{difference(got, wanted)}")


def check_in(what, part, whole):
    if part not in whole:
        FAILURES.append(what)
        print(f"FAILED {what}\n   {part!r} is not in\n   {whole!r}")


def finish():
    if FAILURES:
        sys.exit(f"{len(FAILURES)} failed")
    print("all as expected")
