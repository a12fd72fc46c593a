"""gv100 log: several communicators in one log, ranks interleaved, what changed, figures."""

import os
import tempfile

from gv_cli import check, check_in, finish, gv100, gv100_json

TMP = tempfile.TemporaryDirectory(prefix="gv-log-")


def write(name, lines):
    path = os.path.join(TMP.name, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return path


def said(rank, text, tid=0, pid=None, how="INFO", tag=""):
    pid = pid or 100 + rank
    return f"{tag}node1:{pid}:{tid or pid} [{rank}] NCCL {how} {text}"


def member(rank, n, comm, cid=None, end="Init START", bus=None):
    cid = f" commId {cid}" if cid else ""
    bus = bus or f"{0x1A + rank:x}000"
    nvml = f" nvmlDev {rank}" if cid else ""
    return f"comm 0x{comm:x} rank {rank} nranks {n} cudaDev {rank}{nvml} busId {bus}{cid} - {end}"


def ring(n, via, cid, base, gpus=None, order=None, tag=lambda r: ""):
    """What the ranks of one communicator say, rank by rank in turns as mpirun mixes them."""
    gpus = gpus or list(range(n))
    order = order or list(range(n))
    lines = [
        said(gpus[r], f"ncclCommInitRank comm 0x{base + r:x} rank {r} nranks {n} cudaDev {gpus[r]} "
             f"nvmlDev {gpus[r]} busId {0x1A + gpus[r]:x}000 commId {cid} - Init START", tag=tag(r))
        for r in range(n)
    ]
    text = " ".join(map(str, order))
    lines += [said(gpus[0], f"Channel 0{c}/02 : {text}", tag=tag(0)) for c in range(2)]
    for c in range(2):
        for i, r in enumerate(order):
            to = order[(i + 1) % n]
            lines.append(
                said(gpus[r], f"Channel 0{c}/0 : {r}[{gpus[r]}] -> {to}[{gpus[to]}] via {via}", tid=7000 + r, tag=tag(r))
            )
    lines += [said(gpus[r], "Connected all rings", tid=7000 + r, tag=tag(r)) for r in range(n)]
    lines += [said(gpus[1], f"Channel 00/0 : 1[{gpus[1]}] -> 0[{gpus[0]}] via {via}", tid=7001, tag=tag(1))]
    return lines


def edges(comm, of_ring=True):
    return [f"{e['from']}>{e['to']} {e['transport']}" for e in comm["edges"] if e["ring"] or not of_ring]


P2P = "P2P/CUMEM"
SHM = "SHM/direct/direct"
FOUR_P2P = ["0>1 P2P", "1>2 P2P", "2>3 P2P", "3>0 P2P"]


def test_several():
    lines = ["NCCL version 2.28.9+cuda12.9"]
    one = ring(4, P2P, "0xa1", 0x1000, tag=lambda r: f"[1,{r}]<stdout>:")
    two = ring(2, SHM, "0xb2", 0x2000, gpus=[0, 2])
    three = ring(2, P2P, "0xc3", 0x3000, gpus=[1, 3])
    lines += one + [line for pair in zip(two, three) for line in pair]
    got = gv100_json("log", write("several.log", lines))
    check("NCCL", got["nccl"], "2.28.9+cuda12.9")
    check("ids", [c["id"] for c in got["communicators"]], ["0xa1", "0xb2", "0xc3"])
    check("transports", [c["transport"] for c in got["communicators"]], ["P2P", "SHM", "P2P"])
    check("edges of the first", edges(got["communicators"][0]), FOUR_P2P)
    check("the tree's edge is none of the ring", len(got["communicators"][0]["edges"]), 5)
    check("members", [r["bus_id"] for r in got["communicators"][1]["ranks"]], ["0000:1a:00.0", "0000:1c:00.0"])


def test_before_ids():
    """Two groups of two at once under NCCL 2.12: the only line with a name is the last."""
    lines = []
    for c in range(2):
        for pair in ((0, 1), (2, 3)):
            for r, gpu in enumerate(pair):
                peer = pair[1 - r]
                lines.append(
                    said(gpu, f"Channel 0{c} : {r}[{0x1A + gpu:x}000] -> {1 - r}[{0x1A + peer:x}000] via direct shared memory")
                )
    for pair in ((0, 1), (2, 3)):
        for r, gpu in enumerate(pair):
            lines.append(said(gpu, f"comm 0x{0x10 + gpu:x} rank {r} nranks 2 cudaDev {gpu} busId {0x1A + gpu:x}000 - Init COMPLETE"))
    got = gv100_json("log", write("old.log", lines))
    members = [[r["bus_id"] for r in c["ranks"]] for c in got["communicators"]]
    check("two communicators", members, [["0000:1a:00.0", "0000:1b:00.0"], ["0000:1c:00.0", "0000:1d:00.0"]])
    check("both by SHM", [c["transport"] for c in got["communicators"]], ["SHM", "SHM"])


def test_split():
    """ncclCommSplit before 2.28 names no id: parent, count and color tell the children apart."""
    lines = ring(4, P2P, "0xa1", 0x1000)
    for r in (0, 3, 1, 2):
        child, rank = r % 2, r // 2
        lines.append(
            said(r, f"ncclCommSplit comm 0x{0x2000 + r:x} rank {rank} nranks 2 cudaDev {r} nvmlDev {r} "
                 f"busId {0x1A + r:x}000 parent 0x{0x1000 + r:x} splitCount 1 color {child} key {r} - Init START")
        )
    got = gv100_json("log", write("split.log", lines))["communicators"]
    members = [[r["nvml_dev"] for r in c["ranks"]] for c in got]
    check("children by color", members, [[0, 1, 2, 3], [0, 2], [1, 3]])


def test_against():
    before = write("before.log", ring(4, P2P, "0xa1", 0x1000))
    after = write("after.log", ring(4, SHM, "0xa9", 0x5000))
    done = gv100("log", after, "--against", before)
    check_in("sentence", "4 of 4 edges went from P2P to SHM", done.stdout)
    got = gv100_json("log", after, "--against", before)["against"]["changes"][0]
    check("moved", got["moved"], [{"from": "P2P", "to": "SHM", "edges": 4}])
    check("same ring", got["same_ring"], True)
    turned = write("turned.log", ring(4, SHM, "0xa9", 0x5000, order=[0, 2, 1, 3]))
    done = gv100("log", turned, "--against", before)
    check_in("another order", "4 of 4 edges went from P2P to SHM; the ring's order changed", done.stdout)
    one = [line.replace("1[1] -> 2[2] via " + P2P, "1[1] -> 2[2] via " + SHM) for line in ring(4, P2P, "0x1", 0x1000)]
    done = gv100("log", write("one.log", one), "--against", before)
    check_in("one edge", "1 of 4 edges went from P2P to SHM", done.stdout)
    check_in("nothing", "all 4 edges kept", gv100("log", before, "--against", before).stdout)


TUNERS = [
    # lines, in use, name
    (["Using tuner plugin gv100"], True, "gv100"),
    (["TUNER/Plugin: Using gv100 (v4)"], True, "gv100"),
    (["TUNER/Plugin: Plugin name set by env to libx.so", "Successfully loaded external tuner plugin /opt/libx.so"], True, "/opt/libx.so"),
    (["TUNER/Plugin: Using internal tuner plugin."], False, None),
    (["TUNER/Plugin: Could not find: libnccl-tuner.so"], False, None),
    (["External tuner plugin /opt/libx.so is unsupported"], False, None),
    (["TUNER/Plugin: Plugin name set by env to libx.so"], None, None),
    (["NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin."], None, None),
]


def test_tuner():
    for lines, in_use, name in TUNERS:
        got = gv100_json("log", write("tuner.log", [said(0, line) for line in lines]))["tuner"]
        check(str(lines), (got["in_use"], got["name"]), (in_use, name))


def test_ours():
    text = "gv100: communicator 00000000000000a1, GPUs 0-5: lent links 4-5, 5-0 (evidence: measured). 6.98 against 5.72 GB/s"
    lines = ring(2, P2P, "0xff", 0x9000) + ring(2, P2P, "0xa1", 0x1000)
    first = len(lines) + 1
    lines += [said(r, text) for r in range(2)] + [said(1, "gv100: no stamp", how="WARN").replace("] NCCL", "] gv100:188 NCCL")]
    got = gv100_json("log", write("ours.log", lines))
    check("decisions, once each", [d["text"] for d in got["decisions"]], [text[7:], "no stamp"])
    check("line", [d["line"] for d in got["decisions"]], [first, first + 2])
    check("of which communicator", got["decisions"][0]["communicator"], 1)


def test_profile():
    lines = ring(2, P2P, "0xa1", 0x1000, gpus=[4, 5])
    got = gv100_json("log", write("p.log", lines), "--profile", "4028")["communicators"][0]
    known = [e["gbs"] for e in got["edges"]]
    check("figures", all(gbs is None or gbs > 1 for gbs in known) and any(known), True)
    check("slowest", got["slowest"]["gbs"], min(gbs for gbs in known if gbs))
    check("GPUs", [r["gpu"] for r in got["ranks"]], [4, 5])
    three = ring(3, P2P, "0xa1", 0x1000, gpus=[0, 4, 5])
    three = [line.replace(P2P, SHM) if "1[4] -> 2[5]" in line or "2[5] -> 0[0]" in line else line for line in three]
    got = gv100_json("log", write("host.log", three), "--profile", "4028")["communicators"][0]
    check("an edge through the host bounds", [got["slowest"][k] for k in ("from", "transport", "gbs")], [1, "SHM", None])
    path = os.path.join(TMP.name, "host.log")
    check_in("said", "1 -> 2 by SHM, through host memory", gv100("log", path, "--profile", "4028").stdout)


def test_send_and_receive():
    """Connections of send and receive are no ring edges, though they join neighbours."""
    lines = ring(4, P2P, "0xa1", 0x1000)
    lines += [said(0, f"Channel 00/1 : 0[0] -> 1[1] via {SHM}", tid=7000)]
    comm = gv100_json("log", write("sr.log", lines))["communicators"][0]
    check("the ring's edges", edges(comm), FOUR_P2P)
    check("the ring's transport", comm["transport"], "P2P")


def test_damage():
    lines = ring(4, P2P, "0xa1", 0x1000)
    glued = lines[6] + lines[7]
    got = gv100_json("log", write("glued.log", lines[:6] + [glued] + lines[8:]))
    check("two ranks in one line", edges(got["communicators"][0]), FOUR_P2P)
    shaded = [f"\033[4m{line}\033[0m\r" for line in lines]
    got = gv100_json("log", write("escapes.log", shaded))
    check("escapes", edges(got["communicators"][0]), FOUR_P2P)
    cut = write("cut.log", lines[:9] + [lines[9][:-12]])
    check("a line cut", gv100_json("log", cut)["cut_line"], 10)
    done = gv100("log", write("none.log", ["hello"]))
    check("no NCCL", (done.returncode, "NCCL_DEBUG=INFO" in done.stderr), (3, True))
    check("no file", gv100("log", "/nonexistent").returncode, 3)
    check("usage", gv100("log").returncode, 2)
    path = os.path.join(TMP.name, "bytes.log")
    with open(path, "wb") as f:
        f.write(b"\x00\xff\xfe" + lines[0].encode() + b"\xff\n" + said(0, "TUNER/Plugin: Using \xff (v3)").encode("latin-1"))
    check("any byte", gv100("log", path, "--json").returncode, 0)


for test in [value for name, value in list(globals().items()) if name.startswith("test_")]:
    test()
finish()
