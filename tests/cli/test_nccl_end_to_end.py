"""From the virtual machine to a tuned job, all parts real but the driver and NCCL below them: calibrate
measures NCCL, verify leaves its stamp, the plugin decides by that profile in NCCL's own workers, and
compare says what it brought."""

import json
import os
import tempfile

from gv_cli import check, check_in, environment, finish, gv100, gv100_json

FOLDER = tempfile.TemporaryDirectory(prefix="gv-end-to-end-")
# Published busbw of AllReduce at 1 GiB: default, and tuned where P2P across the host bridge gains.
PUBLISHED = {
    "0-1": (11.40, None), "0,5": (6.99, 7.78), "7,9": (73.31, None), "0,10": (6.90, None),
    "0-4": (11.17, None), "0-5": (6.89, 7.94), "0-9": (6.87, 7.87), "0-10": (7.61, None),
}
# The plans that were there to choose from.
PLANS = {"0,5": ["bridge"], "0-5": ["lend 4-5 5-0", "bridge"], "0-9": ["lend 4-5 8-0"],
         "0-10": ["lend 4-5"]}

# Published with NCCL_P2P_LEVEL=PHB; at eleven it does not gain, since two edges stay on SHM.
FORCED = {"0,5": 7.78, "0-5": 7.94, "0-9": 7.87, "0-10": 7.54}
REGRET = {}


def path_of(name):
    return os.path.join(FOLDER.name, name)


def faults(name, text):
    with open(path_of(name), "w") as out:
        out.write(text)
    return path_of(name)


def measured(machine, name, *args, env=None):
    """Calibrates and verifies; the profile and the environment of a job that has both."""
    profile, stamp = path_of(name + ".yaml"), path_of(name + ".stamp.yaml")
    done = gv100("calibrate", "--virtual", machine, "--quick", "--only", "p2p,nccl", "-o", profile, *args,
                 env=env or environment(), timeout=280)
    check(f"{name}: calibrate", (done.returncode, done.stderr), (0, ""))
    stamped = gv100_json("verify", "--virtual", machine, "--stamp", stamp)
    check(f"{name}: verified", stamped["ok"], True)
    return profile, stamp


def compare(machine, profile, stamp, gpus, *args, **more):
    env = environment(GV100_STAMP=stamp, **more)
    done = gv100("compare", "--virtual", machine, "--profile", profile, "--gpus", gpus, "--json", *args, env=env,
                 timeout=280)
    check(f"{gpus}: status", (done.returncode, done.stderr), (0, ""))
    return json.loads(done.stdout)


def near(what, got, wanted, by=0.03):
    if got is None or abs(got / wanted - 1) > by:
        check(what, got, f"{wanted} within {by:.0%}")


def cells(result):
    return {(r["variant"], r["operation"], r["size"]): r for r in result["results"]}


def check_group(gpus, result, noise):
    found, (default, tuned) = cells(result), PUBLISHED[gpus]
    check(f"{gpus}: no wrong element", sum(r["nwrong"] for r in result["results"]), 0)
    near(f"{gpus}: default", found["default", "AllReduce", 1 << 30]["bus_bw"], default, 0.03 + noise)
    near(f"{gpus}: tuned", found["tuned", "AllReduce", 1 << 30]["bus_bw"], tuned or default, 0.03 + noise)
    for (variant, operation, size), r in found.items():
        if variant == "tuned" and r["bus_bw"] < found["default", operation, size]["bus_bw"] * (1 - 2 * noise - 1e-6):
            check(f"{gpus} {operation} {size}: never worse", r["bus_bw"], found["default", operation, size]["bus_bw"])
    # Regret: what the best plan measured here would have brought beyond the one that was chosen.
    for (variant, operation, size), r in found.items():
        if variant == "tuned" and operation == "AllReduce":
            best = max(other["bus_bw"] for (_, o, s), other in found.items() if (o, s) == (operation, size) and other["times"])
            regret = best / r["bus_bw"] - 1
            REGRET[gpus] = max(regret, REGRET.get(gpus, 0))
            check(f"{gpus}: regret at {size} ({regret:.2%})", regret <= 2 * noise + 1e-6, True)
    (kept,) = [v["plugin_transport"] for v in result["variants"] if v["name"] == "tuned"]
    check(f"{gpus}: transport", kept, "p2p" if tuned else "default")


def reference_machine():
    profile, stamp = measured("4028", "4028")
    shown = gv100_json("show", "--profile", profile)
    check("which NCCL", shown["provenance"]["nccl"], "2.28.9")
    check("its groups", sorted({g["operation"] for g in shown["groups"]}), ["AllReduce", "AllToAll"])
    for gpus in PUBLISHED:
        plans = [word for plan in PLANS.get(gpus, []) for word in ("--variant", plan)]
        result = compare("4028", profile, stamp, gpus, "-b", "64K", "-e", "1G", "-f", "128", "--repeats", "3", *plans)
        check_group(gpus, result, 0)
        if gpus in FORCED:
            forced = compare("4028", profile, stamp, gpus, "-o", "AllReduce", "-b", "1G", "-e", "1G", "--repeats", "3",
                             NCCL_P2P_LEVEL="PHB")
            near(f"{gpus}: forced", cells(forced)["default", "AllReduce", 1 << 30]["bus_bw"], FORCED[gpus])
            check(f"{gpus}: the user's level wins", {r["verdict"] for r in forced["comparisons"]}, {"tie"})


def with_noise():
    noise = environment(GV_VIRTUAL_FAULTS=faults("noise.yaml", "noise: 0.01\nseed: 7\n"))
    profile, stamp = measured("4028", "noisy", "--groups", "0,5;0-5;0-10", env=noise)
    for gpus in ("0,5", "0-5", "0-10"):
        result = compare("4028", profile, stamp, gpus, "-b", "64K", "-e", "1G", "-f", "128",
                         GV_VIRTUAL_FAULTS=path_of("noise.yaml"))
        check_group(gpus, result, 0.01)
        samples = [r["times"] for r in result["results"] if r["operation"] == "AllReduce"]
        check(f"{gpus}: samples differ", all(len(set(times)) > 1 for times in samples), True)


def exchange_that_loses():
    """AllReduce gains 22 %, AllToAll falls to a ninth: the default stays, unless all is AllReduce."""
    machine = "exchange-loses"
    profile, stamp = measured(machine, machine, "--groups", "0,2;0-3")
    for gpus, loss in (("0,2", 1 / 9), ("0-3", None)):
        told = gv100_json("explain", "--profile", profile, "--gpus", gpus)
        check(f"{gpus}: default", told["transport"], "default")
        check_in(f"{gpus}: names the operation that loses", "AllToAll", told["reason"])
        check_in(f"{gpus}: and what would have been gained", "AllReduce", told["reason"])
        result = compare(machine, profile, stamp, gpus, "-b", "256M", "-e", "256M", "--repeats", "3")
        check(f"{gpus}: a tie in both", [r["verdict"] for r in result["comparisons"]], ["tie", "tie"])
        alone = compare(machine, profile, stamp, gpus, "-b", "256M", "-e", "256M", "--repeats", "3",
                        GV100_OPERATIONS="AllReduce")
        reduce, exchange = alone["comparisons"]
        near(f"{gpus}: a job of AllReduce gains", 1 + reduce["gain"], 22 / 18)
        check(f"{gpus}: verdict", (reduce["verdict"], exchange["verdict"]), ("gain", "loss"))
        if loss:
            near(f"{gpus}: and loses the rest", 1 + exchange["gain"], loss)
        # the same from the profile: its machine's jobs are declared to use AllReduce alone
        only = path_of(f"{machine}-{gpus}.yaml")
        with open(profile) as file, open(only, "w") as out:
            text = file.read()
            check("the profile declares nothing yet", "operations:" in text, False)
            out.write(text.replace("policy:\n", "policy:\n  operations: [AllReduce]\n", 1) if "\npolicy:\n" in text
                      else text + "policy:\n  operations: [AllReduce]\n")
        told = gv100_json("explain", "--profile", only, "--gpus", gpus)
        check(f"{gpus}: policy.operations turns it on", told["transport"], "p2p")
        declared = compare(machine, only, stamp, gpus, "-o", "AllReduce", "-b", "256M", "-e", "256M", "--repeats", "3")
        check(f"{gpus}: policy.operations gets the gain", [r["verdict"] for r in declared["comparisons"]], ["gain"])


def other_releases():
    """Before 2.28.7 the plugin comes by preload."""
    profile, stamp = measured("4028", "4028-6", "--groups", "0-5")
    for release in ("2.19.3", "2.23.4", "2.27.3", "2.30.7"):
        result = compare("4028", profile, stamp, "0-5", "-o", "AllReduce", "-b", "64M", "-e", "64M", "--repeats", "3",
                         GV_HOST_RELEASE=release)
        check(f"{release}: played", result["nccl"]["version"], release)
        check(f"{release}: gain", [r["verdict"] for r in result["comparisons"]], ["gain"])


reference_machine()
with_noise()
exchange_that_loses()
other_releases()
finish()
