"""Calls that NCCL refuses: parents that are none, ranks that cannot be, lists without a place. What
comes back is the same with the plugin before them, and the ranks that had registered are gone."""
import os
import subprocess
import tempfile

from gvhost import NEW, OLD, BIN, SLOW, check, done


def job(release, folder, *args):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "GVREC_", "GV100_"))}
    clean.update(GV100_PROFILE_DIR=os.environ["GV100_PROFILE_DIR"], GV100_SHM_DIR=folder)
    run = subprocess.run([os.path.join(BIN, "gv-nccl-host"), "--release", release, *args, "--exec",
                          f"exec {os.path.join(BIN, 'gv-torture-nccl')}"], env=clean, capture_output=True,
                         text=True, timeout=120 * SLOW, check=False)
    check(f"{release} {args}: status, stderr", (run.returncode, run.stderr), (0, ""))
    return dict(line.rsplit(": ", 1) for line in run.stdout.splitlines())


for release in OLD + NEW:
    with tempfile.TemporaryDirectory() as folder:
        plain = job(release, folder, "--no-plugin")
        check(f"{release}: NCCL itself refuses",
              [plain.get(k) for k in ("split of nothing", "rank beyond the last", "all, nowhere to put them",
                                      "shrink by nobody", "a communicator of one")],
              ["4", "4", "4", "4", "0"])
        with_it = job(release, folder)
        check(f"{release}: with the plugin", with_it, plain)
        check(f"{release}: nothing stays in the registry", with_it.get("left behind"), "0")

done()
