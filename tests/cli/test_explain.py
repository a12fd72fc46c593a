"""Decisions on the published profile of the reference machine, by the real command."""

import os

from gv_cli import check, check_in, environment, finish, gv100, gv100_json, sysfs

# gpus: transport, evidence, thin, gain (from medians; None: not measured), edits, edges on SHM,
# what the reason must name
DECISIONS = {
    "0,5": ("p2p", "measured", True, 7.78 / 6.99 - 1, ["bridge"], 0, "7.78 against 6.99"),
    "0-5": ("p2p", "measured", True, 7.94 / 6.89 - 1, ["lend", "lend"], 0, "7.94 against 6.89"),
    "0-9": ("p2p", "measured", True, 7.87 / 6.87 - 1, ["lend", "lend"], 0, "7.87 against 6.87"),
    "0-6": ("p2p", "interpolated", True, None, ["lend", "lend"], 0, "0-5"),
    "0-7": ("p2p", "interpolated", True, None, ["lend", "lend"], 0, "0-5"),
    "0-8": ("p2p", "interpolated", True, None, ["lend", "lend"], 0, "0-9"),
    "0-10": ("default", None, None, 7.54 / 7.61 - 1, [], 3, "8-10"),
    "0,1": ("default", None, None, None, [], 0, "11.40"),
    "7,9": ("default", None, None, None, [], 0, "73.31"),
    "0,10": ("default", None, None, None, [], 2, "6.90"),
    "0-4": ("default", None, None, None, [], 0, "11.17"),
    "5-9": ("default", None, None, None, [], 0, "one island"),
    "0-4,10": ("default", None, None, None, [], 2, "4-10"),
}
# lent pairs, where links are lent: the ring edges that cross the host bridge
LENT = {"0-5": {(4, 5), (0, 5)}, "0-9": {(4, 5), (0, 8)}, "0-6": {(4, 5), (0, 6)}}
KEYS = {"gpus", "transport", "edits", "evidence", "thin", "gain", "reason", "ring", "rows"}


def indexes(text):
    gpus = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        gpus += range(int(first), int(last or first) + 1)
    return gpus


def check_edges(gpus, answer, shm):
    ring, n = answer["ring"], len(indexes(gpus))
    check(f"{gpus} ring holds each GPU once", sorted(ring["order"]), indexes(gpus))
    check(f"{gpus} ring is closed", [e["from"] for e in ring["edges"]], ring["order"])
    check(f"{gpus} edges", [e["to"] for e in ring["edges"]], [ring["order"][(i + 1) % n] for i in range(n)])
    check(f"{gpus} transports", {e["transport"] for e in ring["edges"]} <= {"P2P", "SHM"}, True)
    check(f"{gpus} edges on SHM", sum(e["transport"] == "SHM" for e in ring["edges"]), shm)
    check(f"{gpus} slowest is an edge", ring["slowest"] is None or ring["slowest"] in ring["edges"], True)


def check_decision(gpus, answer):
    transport, evidence, thin, gain, edits, shm, words = DECISIONS[gpus]
    check(f"{gpus} keys", KEYS - answer.keys(), set())
    check(f"{gpus} gpus", answer["gpus"], indexes(gpus))
    check(f"{gpus} transport", answer["transport"], transport)
    check(f"{gpus} edits", [e["kind"] for e in answer["edits"]], edits)
    if evidence:
        check(f"{gpus} evidence", answer["evidence"], evidence)
        check(f"{gpus} thin", answer["thin"], thin)
    got = answer["gain"]
    check(f"{gpus} gain", got is not None and round(got, 4), gain is not None and round(gain, 4))
    check_in(f"{gpus} reason", words, answer["reason"])
    check_edges(gpus, answer, shm)
    if gpus in LENT:
        check(f"{gpus} lent", {tuple(sorted((e["from"], e["to"]))) for e in answer["edits"]}, LENT[gpus])


def test_decisions():
    for gpus in DECISIONS:
        check_decision(gpus, gv100_json("explain", "--profile", "4028", "--gpus", gpus))


def test_several():
    args = [word for gpus in DECISIONS for word in ("--gpus", gpus)]
    answers = gv100_json("explain", "--profile", "4028", *args)
    for gpus, answer in zip(DECISIONS, answers):
        check_decision(gpus, answer)
    check("one answer for each --gpus", len(answers), len(DECISIONS))
    check("without --gpus: the measured groups", len(gv100_json("explain", "--profile", "4028")), 8)


def test_bridge_names_its_gpus():
    edit = gv100_json("explain", "-p", "4028", "-g", "0,5")["edits"][0]
    check("bridge", (edit["from"], edit["to"], edit["gpus"]), (0, 5, [0, 5]))


def test_exit_status():
    rows = [
        ("0-5", [], 0),
        ("0-10", [], 0),
        ("0-5", ["--exit-code"], 0),
        ("0-10", ["--exit-code"], 1),
    ]
    for gpus, more, status in rows:
        done = gv100("explain", "--profile", "4028", "--gpus", gpus, *more)
        check(f"{gpus} {more} status", done.returncode, status)


def test_operations():
    """A bridge moves every operation: without AllReduce alone declared it is not chosen."""
    wide = gv100_json("explain", "-p", "4028", "-g", "0,5", "--operations", "AllReduce,AllToAll")
    check("bridge refused where AllToAll is used and not measured", wide["transport"], "default")
    lent = gv100_json("explain", "-p", "4028", "-g", "0-5", "--operations", "AllReduce,AllToAll")
    check("lent links stay", lent["transport"], "p2p")


def test_machine():
    """With a machine, GPUs are the machine's and the host's verification is named."""
    root = sysfs()
    answer = gv100_json("explain", "--machine", root, "--gpus", "0-5")
    check("decided as from the profile alone", answer["transport"], "p2p")
    check("bus ids", answer["bus_ids"][0], "0000:1a:00.0")
    check("not verified here", answer["verified"]["state"], "no")
    env = environment(GV100_SYSFS=root, GV100_ASSUME_VERIFIED="1")
    check("by assumption", gv100_json("explain", "-g", "0-5", env=env)["verified"]["state"], "yes")


def test_stamp():
    """What this host verified is named; a pair that it found corrupt is kept apart."""
    root = sysfs()
    stamp = os.path.join(root, "verified.yaml")
    done = gv100("verify", "--virtual", "4028", "-o", stamp)
    check("verified", (done.returncode, os.path.exists(stamp)), (0, True))
    env = environment(GV100_SYSFS=root, GV100_STAMP=stamp)
    answer = gv100_json("explain", "-g", "0-5", env=env)
    check("this host verified it", answer["verified"]["state"], "yes")
    with open(stamp, encoding="utf-8") as f:
        text = f.read()
    text = text.replace("from: 0\n    to: 1-9", "from: 0\n    to: 2-9", 1)
    text = text.replace("pairs:\n", "pairs:\n  - from: 0\n    to: 1\n    p2p: corrupt\n", 1)
    with open(stamp, "w", encoding="utf-8") as f:
        f.write(text)
    answer = gv100_json("explain", "-g", "0,1", env=env)
    check("a corrupt pair", (answer["transport"], [e["kind"] for e in answer["edits"]]), ("shm", ["separate"]))
    check_in("and why", "bad on this host", answer["reason"])


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        test()
finish()
