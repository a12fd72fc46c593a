"""Algorithm, protocol and channels from a profile, in every release's tuner slot: with the one variable,
and in the tuner slot alone, where nothing says who is in the communicator but its size and its id."""
import tempfile

from gvhost import NEW, OLD, PLUGIN, SLOW, check, done, host
from host_profile import imported, profile


def choice(comm):
    return comm["algorithm"], comm["protocol"], comm["channels"], comm["topology_file"], comm["error"]


ADVISED = ("TREE", "LL", 2, False, None)
NO_CONTEXT = ["2.19.3", "2.20.5"]  # tuner v1: its calls do not say which communicator asks
HAS_ID = ["2.28.3"] + NEW          # tuner v5 and later: init gets the communicator's id


def slots(release, mode, path, comms):
    """The communicators with the one variable, with the tuner slot alone, and without the plugin."""
    run = ["--machine", "4028", "--release", release, "--mode", mode]
    run += [word for gpus in comms for word in ("--comm", gpus)]
    alone = {"GV100_PROFILE": path, "NCCL_TUNER_PLUGIN": PLUGIN}
    return (host(*run, env={"GV100_PROFILE": path}, status=0),
            host(*run, "--no-plugin", env=alone, status=0), host(*run, "--no-plugin", status=0))


with tempfile.TemporaryDirectory() as folder:
    for release in OLD + NEW:
        path = profile(folder, release, ["0-10", "0-4"])
        for mode in ["threads", "processes"] if release in ("2.20.5", "2.27.3", "2.32.3") else ["threads"]:
            where = f"{release} {mode}"
            full, alone, plain = slots(release, mode, path, ["0-10"])
            check(f"{where}: the one variable, all GPUs", choice(full[0]), ADVISED)
            # 2.27.3 refuses paths, so that this name brings no tuner there.
            check(f"{where}: tuner slot alone, all GPUs", choice(alone[0]),
                  ADVISED if release != "2.27.3" else choice(plain[0]))
            full, alone, plain = slots(release, mode, path, ["0-10", "0-4"])
            for i, gpus in enumerate(["all", "some"]):
                check(f"{where}: two alive, the one variable, {gpus} GPUs", choice(full[i]),
                      choice(plain[i]) if release in NO_CONTEXT else ADVISED)
            check(f"{where}: tuner slot alone, some GPUs", choice(alone[1]),
                  ADVISED if release in HAS_ID else choice(plain[1]))
    # A rank without a profile says so by the communicator's id: the others give up theirs at once.
    for release in HAS_ID:
        alone = {"GV100_PROFILE": profile(folder, release, ["0-4"]), "NCCL_TUNER_PLUGIN": PLUGIN}
        run = ["--machine", "4028", "--release", release, "--mode", "processes", "--comm", "0-4"]
        plain, = host(*run, "--no-plugin", status=0)
        one, = host(*run, "--no-plugin", "--rank-env", "3:GV100_PROFILE=/absent.yaml", env=alone, status=0)
        check(f"{release}: tuner slot alone, a rank without a profile",
              (choice(one), one["consistent"], one["init_ms"] < 2500 * SLOW), (choice(plain), True, True))
    # Measured with another release: nothing is advised.
    path = profile(folder, "2.18.1", ["0-10"])
    other, = host("--machine", "4028", "--release", "2.28.9", "--comm", "0-10", env={"GV100_PROFILE": path})
    plain, = host("--machine", "4028", "--release", "2.28.9", "--comm", "0-10", "--no-plugin")
    check("another release's table", choice(other), choice(plain))
    # Somebody's choices, imported: they name no release and hold with each.
    path = imported(folder, "allreduce,0,-1,tree,ll,2,1,11\nallreduce,0,-1,ring,simple,1,2,-1\n")
    for release in ["2.23.4", "2.27.7"] + NEW:
        run = ["--machine", "4028", "--release", release, "--comm", "0-10"]
        got, = host(*run, env={"GV100_PROFILE": path}, status=0)
        check(f"{release}: imported choices", choice(got), ADVISED)

done()
