"""What is said where the slots belong to plugins of the user's, so that none of ours is given NCCL's
logger: on stderr, by NCCL_DEBUG, what is decided here and what is not."""
import json
import os
import subprocess

from gvhost import *

TRANSPORTS_OURS = "algorithms and protocols are not decided here, transports are"
NOTHING_OURS = "algorithms and protocols are not decided here, and transports are not either"
NET_TAKEN = "the net slot is taken"
DECIDED = "GPUs 0-5: p2p"


def said(release, *args, **env):
    """Lines on stderr, and the communicator."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "GVREC_", "GV100_"))}
    clean.update(GV100_PROFILE_DIR=os.environ["GV100_PROFILE_DIR"], **env)
    done = subprocess.run([os.path.join(BIN, "gv-nccl-host"), "--release", release, "--json", "--comm", "0-5", *args],
                          env=clean, capture_output=True, text=True, timeout=120 * SLOW, check=False)
    check(f"{release} {args} {env}: status", done.returncode, 0)
    return done.stderr.splitlines(), json.loads(done.stdout)


# variables, launcher, oldest and newest release; words that are said once each, file handed over
CASES = [
    # a net plugin of the user's that has a tuner: nothing proves that no network is needed
    ({"NCCL_NET_PLUGIN": RECORDER, "GVREC_NET_PROPERTIES": "0"}, "plain", "2.28.9", "2.99", [NET_TAKEN, NOTHING_OURS],
     False),
    # the same with proof of one node: the hook takes the slot
    ({"NCCL_NET_PLUGIN": RECORDER, "GVREC_NET_PROPERTIES": "0"}, "torchrun", "2.28.9", "2.99",
     [DECIDED, TRANSPORTS_OURS], True),
    # the preload needs no slot; from 2.21 on the net plugin's tuner is used
    ({"NCCL_NET_PLUGIN": RECORDER, "GVREC_NET_PROPERTIES": "0"}, "plain", "2.21.5", "2.28.3",
     [DECIDED, TRANSPORTS_OURS], True),
    ({"NCCL_TUNER_PLUGIN": RECORDER}, "torchrun", "2.19.3", "2.99", [DECIDED, TRANSPORTS_OURS], True),
    ({"NCCL_TUNER_PLUGIN": "none"}, "torchrun", "2.28.3", "2.99", [DECIDED, TRANSPORTS_OURS], True),
    ({"GV100_PROFILE": "/nonexistent.yaml", "NCCL_TUNER_PLUGIN": RECORDER}, "torchrun", "2.19.3", "2.28.3",
     ["/nonexistent.yaml", NOTHING_OURS], False),
    # here the net slot is ours, and NCCL's logger was given the warning there
    ({"GV100_PROFILE": "/nonexistent.yaml", "NCCL_TUNER_PLUGIN": RECORDER}, "torchrun", "2.28.9", "2.99",
     [NOTHING_OURS], False),
]


def as_numbers(release):
    return [int(part) for part in release.split(".")]


for env, launcher, since, until, words, file in CASES:
    for release in OLD + NEW:
        if not as_numbers(since) <= as_numbers(release) <= as_numbers(until):
            continue
        where = f"{release} {env} {launcher}"
        found, comm = said(release, "--launcher", launcher, NCCL_DEBUG="INFO", **env)
        check(f"{where}: file", comm["topology_file"], file)
        check(f"{where}: only ours on stderr ({found})", [l for l in found if " gv100: " not in l], [])
        for word in words:
            check(f"{where}: '{word}' once ({found})", sum(word in line for line in found), 1)
        check(f"{where}: nothing more ({found})",
              len([l for l in found if not any(w in l for w in words) and OTHER_NCCL not in l]), 0)
        quiet, _ = said(release, "--launcher", launcher, NCCL_DEBUG="WARN", **env)
        check(f"{where}: NCCL_DEBUG=WARN", [l for l in quiet if "gv100: WARN" not in l], [])
        check(f"{where}: NCCL_DEBUG is not set", said(release, "--launcher", launcher, **env)[0], [])

# Where a slot is ours, NCCL's logger is used and stderr is left alone.
for release in ("2.23.4", "2.28.9"):
    found, comm = said(release, NCCL_DEBUG="INFO")
    check(f"{release}: NCCL's logger", (found, any(DECIDED in line for line in comm["log"])), ([], True))

done()
