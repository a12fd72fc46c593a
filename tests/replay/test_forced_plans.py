"""Plans that the measuring tool forces (GV100_FORCE): followed for every release, only under its own
parent, and never a failure."""
import os
import tempfile

import gvhost
from gvhost import check, done, host, transports

# The job's processes are children of gv-nccl-host, whose number only a shell before it can tell.
FOLDER = tempfile.TemporaryDirectory(prefix="gv-forced-")
SCRIPT = os.path.join(FOLDER.name, "gv-nccl-host")
with open(SCRIPT, "w") as script:
    script.write(f"""#!/bin/sh
export GV100_FORCE_BY="${{GV100_FORCE_BY-$$}}"
exec {gvhost.BIN}/gv-nccl-host "$@"
""")
os.chmod(SCRIPT, 0o755)
gvhost.BIN = FOLDER.name

CASES = [  # plan, GPUs, transports around the ring as NCCL's rules give them
    ("default", "0-5", "PPPPSS"),
    ("lend 4-5 5-0", "0-5", "PPPPPP"),
    ("lend 4-5", "0-5", "PPPPPS"),
    ("bridge", "0,5", "PP"),
    ("separate 0-1", "0-5", "SPPPSS"),
    ("algorithm=RING protocol=LL channels=1", "0-5", "PPPPSS"),
]
REFUSED = ["lend", "lend 0-9", "frobnicate", "4-5", "lend 4-4", "channels=0", "algorithm=RINGS", "lend 4-5 count=99",
           "bridge bridge"]


def forced(plan, gpus, release, **more):
    (comm,) = host("--release", release, "--mode", "threads", "--comm", gpus, env={"GV100_FORCE": plan, **more},
                   status=0)
    return comm


for release in ("2.19.3", "2.23.4", "2.27.7", "2.28.9", "2.32.3"):
    for plan, gpus, wanted in CASES:
        got = transports(forced(plan, gpus, release))
        if plan.startswith("separate"):  # 2.19 goes round the other way
            got, wanted = sorted(got), sorted(wanted)
        check(f"{release} {plan}", got, wanted)
for plan in REFUSED:
    check(f"refused: {plan}: default", transports(forced(plan, "0-5", "2.28.9")), "PPPPSS")
# Left behind in the environment of something else: the policy decides as ever.
for by in ("1", "", "x", str(os.getpid() + 1)):
    comm = forced("separate 0-1", "0-5", "2.28.9", GV100_FORCE_BY=by)
    check(f"by {by!r}: the policy's plan", transports(comm), "PPPPPP")
done()
