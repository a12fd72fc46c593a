"""Several NCCLs in one process, each the own of a library that was opened with RTLD_LOCAL: every
communicator gets its own plan. And an NCCL that is linked statically: its calls cannot be seen, and
where a slot of the plugin is in use, the log says so."""
import os
import subprocess
import tempfile

from gvhost import *
from host_profile import profile

P6, P10 = "P" * 6, "P" * 10
# how, then release and GPUs of each library
PRELOAD = [
    ("2.27.7", "2.27.7"), ("2.23.4", "2.27.3"), ("2.19.3", "2.28.3"), ("2.21.5", "2.24.3"),
]


def job(release, program, *args, **env):
    """What each library's NCCL said of its communicator, and the plugin's lines."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "GVREC_", "GV100_"))}
    clean.update(GV100_PROFILE_DIR=os.environ["GV100_PROFILE_DIR"], **env)
    command = " ".join(["exec", os.path.join(BIN, program), *args])
    done = subprocess.run([os.path.join(BIN, "gv-nccl-host"), "--release", release, "--exec", command], env=clean,
                          capture_output=True, text=True, timeout=120 * SLOW, check=False)
    check(f"{release} {args} {env}: status, stderr", (done.returncode, done.stderr), (0, ""))
    found = {}
    for line in done.stdout.splitlines():
        name, _, rest = line.partition(" ")
        one = found.setdefault(name, {"says": []})
        if rest.startswith("says "):
            one["says"].append(rest[5:])
        else:
            one.update(word.split("=", 1) for word in rest.split())
    return found


def number(release):
    major, minor, patch = map(int, release.split("."))
    return str(major * 10000 + minor * 100 + patch)


def communicators(where, found, *want):
    for name, release, transports_ in want:
        one = found.get(name, {})
        check(f"{where}: {name}'s release", one.get("release"), number(release))
        check(f"{where}: {name}", [one.get(k) for k in ("result", "file", "alltoall", "transports")],
              ["0", "1", "0", transports_])
        warned = [l for l in one.get("says", []) if "no decision" in l or "no common" in l or "a plan was made" in l]
        check(f"{where}: {name} warns", warned, [])


for first, second in PRELOAD:
    for how in ([], ["--together"], ["--together", "--all"]):
        found = job(first, "gv-nccl-callers", *how, f"first:{first}:0-5", f"second:{second}:0-9")
        communicators(f"{first} and {second} {how}", found, ("first", first, P6), ("second", second, P10))
    # the same GPUs, so that only the NCCL tells them apart
    found = job(first, "gv-nccl-callers", "--together", "--all", f"first:{first}:0-5", f"second:{second}:0-5")
    communicators(f"{first} and {second}, the same GPUs", found, ("first", first, P6), ("second", second, P6))

# Whoever comes second finds the calls of the first in the global scope, as without the plugin.
found = job("2.27.7", "gv-nccl-callers", "--global=0", "first:2.27.7:0-5", "second:2.23.4:0-9")
communicators("a global NCCL", found, ("first", "2.27.7", P6), ("second", "2.27.7", P10))
check("a global NCCL made the second communicator", any("GPUs 0-9: p2p" in l for l in found["second"]["says"]), True)

# Whoever was bound to its own before stays with it.
found = job("2.27.7", "gv-nccl-callers", "--global=1", "second:2.23.4:0-9", "first:2.27.7:0-5")
communicators("a global NCCL that comes later", found, ("first", "2.27.7", P6), ("second", "2.23.4", P10))
check("both made their own", ["GPUs 0-9: p2p" in " ".join(found["second"]["says"]),
                              "GPUs 0-5: p2p" in " ".join(found["first"]["says"])], [True, True])

# One by its env plugin, the other by preload: both variables, as for an unknown release.
for how in ([], ["--together"]):
    found = job("2.27.3", "gv-nccl-callers", *how, "first:2.27.3:0-5", "second:2.28.9:0-9", NCCL_ENV_PLUGIN=PLUGIN)
    communicators(f"preload and env plugin {how}", found, ("first", "2.27.3", P6), ("second", "2.28.9", P10))
    found = job("2.28.9", "gv-nccl-callers", *how, "first:2.30.7:0-5", "second:2.28.9:0-9")
    communicators(f"two env plugins {how}", found, ("first", "2.30.7", P6), ("second", "2.28.9", P10))

# Tables hold for the release that was measured, whichever NCCL came last.
with tempfile.TemporaryDirectory() as folder:
    path = profile(folder, "2.30.7", ["0-10"])
    for how in ([], ["--together"]):
        found = job("2.28.9", "gv-nccl-callers", *how, "first:2.30.7:0-10", "second:2.28.9:0-10", GV100_PROFILE=path)
        check(f"the table of one release {how}", [found[n]["choice"] for n in ("first", "second")], ["0,0", "1,2"])

# Linked statically: up to 2.28.6 nothing can be interposed; later ones load the env plugin themselves.
for release in OLD:
    one = job(release, "gv-nccl-static", "0-5").get("static", {})
    check(f"static {release}", [one.get(k) for k in ("release", "result", "file", "transports")],
          [number(release), "0", "0", "PPPPSS"])
    says = [l for l in one.get("says", []) if "linked statically" in l]
    check(f"static {release}: says so once", len(says), 1)
    one = job(release, "gv-nccl-static", "0-5", NCCL_TUNER_PLUGIN="libnone.so")["static"]
    check(f"static {release}, no slot: nothing happens", (one["transports"], one["says"]), ("PPPPSS", []))
for release in NEW:
    communicators(f"static {release}", job(release, "gv-nccl-static", "0-5"), ("static", release, P6))

done()
