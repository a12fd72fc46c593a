"""gv100 import: files become one profile, with a source for every figure, or nothing is written."""

import json
import os
import tempfile

from gv_cli import SOURCE, check, check_in, environment, finish, gv100, gv100_json

CASES = os.path.join(SOURCE, "tests/cases")
HEAD = "size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
TMP = tempfile.TemporaryDirectory(prefix="gv-import-")
FACTOR = {"all_reduce": lambda n: 2 * (n - 1) / n, "alltoall": lambda n: (n - 1) / n}


def write(name, text):
    path = os.path.join(TMP.name, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def row(size, us, n, redop="sum", wrong="0", wrong_in="0", op="all_reduce"):
    alg = size / us / 1e3
    half = f"{us:.1f} {alg:.2f} {alg * FACTOR[op](n):.2f}"
    return f"{size} {size // 4} float {redop} -1 {half} {wrong} {half} {wrong_in}"


def table(wanted, n=4, first="# Collective test starting: all_reduce_perf\n", **other):
    """A run of nccl-tests; `other` replaces lines of its frame."""
    bw = [float(r.split()[7]) for r in wanted]
    sizes = [r.split()[0] for r in wanted]
    lines = {
        "setup": f"# nThread 1 nGpus {n} minBytes {sizes[0]} maxBytes {sizes[-1]} step: 2(factor) "
        "warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0",
        "devices": "\n".join(
            f"#  Rank {i:2} Group  0 Pid 1 on h device {i:2} [0000:{0x1A + i:02x}:00] GPU X"
            for i in range(n)
        ),
        "head": "# " + HEAD,
        "rows": "\n".join(wanted),
        "bounds": "# Out of bounds values : 0 OK",
        "average": f"# Avg bus bandwidth    : {sum(bw) / len(bw):g}",
    }
    lines.update(other)
    return first + "\n".join(line for line in lines.values() if line is not None) + "\n"


GOOD = [row(1 << 20, 150.0, 4), row(2 << 20, 280.0, 4)]
TOPO = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\t0-7\t0\nGPU1\tPIX\t X \t0-7\t0\n"
# what is done to a good table, and why it is refused
DOUBTFUL = [
    ({"rows": "\n".join([row(1 << 20, 150.0, 4, wrong="3"), GOOD[1]])}, ":8:", "3 wrong elements"),
    ({"rows": "\n".join([row(1 << 20, 150.0, 4, wrong="N/A"), GOOD[1]])}, ":8:", "N/A"),
    ({"rows": "\n".join([row(1 << 20, 150.0, 4, wrong_in="N/A"), GOOD[1]])}, ":8:", "in place"),
    ({"bounds": "# Out of bounds values : 2 FAILED"}, ":10:", "wrong"),
    ({"bounds": None}, ":10:", "out of bounds values"),
    ({"average": None}, ":10:", "cut"),
    ({"average": "# Avg bus bandwidth    : 17.5"}, ":11:", "average"),
    ({"rows": GOOD[0] + " " + GOOD[1]}, ":8:", "glued"),
    ({"rows": GOOD[0]}, ":8:", "rows are missing"),
    ({"rows": GOOD[0] + "\n" + GOOD[1][:-4]}, ":9:", "12 cells"),
    ({"rows": GOOD[0].replace("150.0", "15.00") + "\n" + GOOD[1]}, ":8:", "damaged"),
    ({"head": None}, ":7:", "column heading"),
    ({"head": "# size count type redop root time alg"}, ":7:", "column heading"),
    ({"head": "# " + HEAD.replace("time", "cputime")}, ":7:", "CPU"),
    ({"setup": "# nThread 1 nGpus 4 minBytes 1048576 maxBytes 2097152 step: 2(factor) validation: 0"}, ":2:", "-c 0"),
    ({"devices": None}, ":3:", "--gpus"),
    ({"extra": "\tGPU0\tGPU1\n"}, "", "GPU0 is missing"),
]


def refused(name, text, place, reason, *args):
    path, out = write("bad.txt", text), os.path.join(TMP.name, "none.yaml")
    done = gv100("import", path, "-o", out, *args)
    check(f"{name}: status", done.returncode, 3)
    check_in(f"{name}: place", path + place, done.stderr)
    check_in(f"{name}: reason", reason, done.stderr)
    check(f"{name}: nothing is written", os.path.exists(out), False)


def test_doubtful():
    for change, place, reason in DOUBTFUL:
        refused(str(change)[:60], table(GOOD, **change), place, reason)
    both = table(GOOD, average=None) + table(GOOD)
    refused("two runs, the first without its end", both, ":12:", "another run begins")
    refused("a second matrix", TOPO + TOPO, ":4:", "second matrix")
    refused("glued cells", TOPO.replace("PIX\t0-7", "PIX0-7", 1), ":2:", "PIX0-7")
    refused("one-sided", TOPO.replace("PIX\t X", "SYS\t X"), ":3:", "damaged")
    refused("nothing known", "some words\n", "", "none of the formats")
    refused("empty", "", "", "none of the formats")
    refused("a variable decides", "NCCL_P2P_DISABLE=1 ./all_reduce_perf\n" + table(GOOD), ":1:", "--edit")
    refused("ranks on one GPU", table(GOOD).replace("device  1 [0000:1b", "device  0 [0000:1a"), ":4:", "one GPU")


def profile(*args):
    out = os.path.join(TMP.name, "out.yaml")
    done = gv100("import", *args, "-o", out)
    check(f"{args} status and errors", (done.returncode, done.stderr), (0, ""))
    shown = gv100_json("show", "--profile", out)
    with open(out, encoding="utf-8") as f:
        return out, shown, f.read()


def test_table():
    path = write("all.txt", table(GOOD))
    _, shown, text = profile(path)
    check_in("provenance", "kind: imported", text)
    check_in("source of a figure", 'source: "all.txt:8"', text)
    check_in("source of the next", 'source: "all.txt:9"', text)
    check("GPUs", len(shown["machine"]["gpus"]) if "machine" in shown else text.count("- index:"), 4)
    check_in("operation", "op: AllReduce", text)
    for tag in ("[1,0]<stdout>:", "0: ", "2024-05-01T10:00:00.123Z "):
        tagged = "".join(tag + line + "\n" for line in table(GOOD).splitlines())
        got = gv100_json("import", write("tags.txt", tagged))["sources"][0]
        check(f"behind {tag}", [s["busbw_gbs"] for s in got["samples"]], [10.49, 11.23])
    in_place = gv100_json("import", path, "--in-place")
    check("in place", len(in_place["sources"][0]["samples"]), 2)
    edit = gv100_json("import", path, "--edit", "p2p-level")
    check("edit", edit["sources"][0]["samples"][0]["edit"], "p2p-level")
    text = "NCCL_ALGO=Ring NCCL_PROTO=LL128 ./all_reduce_perf\n" + table(GOOD)
    sample = gv100_json("import", write("ring.txt", text))["sources"][0]["samples"][0]
    check("algorithm and protocol", (sample["algorithm"], sample["protocol"]), ("RING", "LL128"))


def test_all_to_all():
    rows = [row(1 << 20, 150.0, 4, "none", wrong_in="N/A", op="alltoall")]
    text = table(rows, first="$ ./build/alltoall_perf -g 4\n")
    got = gv100_json("import", write("a2a.txt", text))
    check("AllToAll", got["sources"][0]["samples"][0]["op"], "AllToAll")
    check_in("in place is not taken", "N/A", got["sources"][0]["notes"][0]["text"])
    refused("in place unchecked", text, ":8:", "N/A", "--in-place")
    refused("no name", table(rows, first=""), ":6:", "--op")


def test_together():
    """A matrix, the XML with addresses, two tables: one profile; then more into it."""
    topo = write("topo.txt", TOPO)
    xml = write(
        "lstopo.xml",
        '<topology version="2.0"><object type="Machine">\n'
        '<object type="NUMANode" os_index="0"/><object type="Bridge" bridge_type="0-1">\n'
        '<object type="Bridge" bridge_type="1-1" pci_busid="0000:16:00.0" pci_type="0604 [8086:2030]">\n'
        '<object type="PCIDev" pci_busid="0000:1b:00.0" pci_type="0302 [10de:1db6]"/>\n'
        '<object type="PCIDev" pci_busid="0000:1a:00.0" pci_type="0302 [10de:1dba]"/>\n'
        "</object></object></object></topology>\n",
    )
    two = [row(1 << 20, 150.0, 2), row(2 << 20, 280.0, 2)]
    run = write("run.txt", table(two, n=2) + table(two, n=2))
    out, _, text = profile(topo, run, xml)
    check_in("order by address", 'bus_id: "0000:1a:00.0"', text.split("index: 1")[0])
    check_in("device of the first", "pci_device: 0x1dba", text.split("index: 1")[0])
    check_in("class and its source", 'source: "topo.txt:2"', text)
    check_in("two runs", "run.txt 2", text)
    check_in("match", "match: shape", text)
    again = gv100("import", run, "--into", out)
    check("one measurement counts once", again.returncode, 3)
    check_in("and says so", "in the profile already", again.stderr)
    more = write("more.txt", table([row(4 << 20, 500.0, 2)], n=2))
    check("into", gv100("import", more, "--into", out).returncode, 0)
    with open(out, encoding="utf-8") as f:
        check_in("added", "bytes: 4M", f.read())
    csv = write("w.csv", "from,to,write_gbs\n0,1,9.5\n1,0,9.25\n")
    check("CSV into", gv100("import", csv, "--into", out).returncode, 0)
    csv = write("w.csv", "from,to,write_gbs\n0,1,9.75\n")
    done = gv100("import", csv, "--into", out)
    check("another figure for the same", done.returncode, 3)
    check_in("both are named", "9.75 here, but 9.5 is there already, from topo.txt:2, w.csv:2", done.stderr)
    wrong = write("t3.txt", TOPO.replace("\t0-7\t0\nGPU1", "\t0-7\t1\nGPU1"))
    check_in("NUMA differs", "NUMA node", gv100("import", wrong, xml).stderr)
    done = gv100("import", more, "--into", "4028")
    check_in("a shipped profile stays", "-o", done.stderr)
    csv = write("w.csv", "from,to,host_path_gbs\n0,5,6.75\n")
    done = gv100("import", csv, "--into", "4028", "-o", os.path.join(TMP.name, "more.yaml"))
    check_in("what it was and is", "was published;", " ".join(done.stdout.split()))
    got = gv100_json("import", csv, "--into", "4028", "-o", os.path.join(TMP.name, "more.yaml"))["profile"]
    check("marked as imported", (got["provenance"], got["gpus"]), ("imported", 11))


def test_quoted():
    quoted = "".join("> " + line + "\n" for line in TOPO.splitlines())
    got = gv100_json("import", write("quoted.txt", quoted))["sources"][0]
    check("a quoted matrix", [p["smi_class"] for p in got["pairs"]], ["PIX", "PIX"])


P2P = """[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, GPU X, pciBusID: 1a, pciDeviceID: 0, pciDomainID:0
Device: 1, GPU X, pciBusID: 1b, pciDeviceID: 0, pciDomainID:0
P2P Connectivity Matrix
     D\\D     0     1
       0     1     1
       1     0     1
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 700.00   6.25
     1   6.50 701.00
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 700.00  12.25
     1   6.75 701.00
Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 700.00  20.00
     1   9.00 701.00
P2P=Enabled Latency (P2P Writes) Matrix (us)
   GPU     0      1
     0   1.60   1.75
     1   9.50   1.50

   CPU     0      1
     0   3.00   4.00
     1   4.00   3.00
"""


def test_p2p_bandwidth():
    got = gv100_json("import", write("p2p.txt", P2P))["sources"][0]
    pair = {}
    for p in got["pairs"]:
        pair.setdefault((p["from"], p["to"]), {}).update(p)
    there, back = pair[0, 1], pair[1, 0]
    figures = [there.get(k) for k in ("write_gbs", "both_ways_gbs", "latency_us", "host_path_gbs")]
    check("with P2P", figures, [12.25, 20.0, 1.75, 6.25])
    check("without P2P", (back["p2p"], back.get("write_gbs"), back["host_path_gbs"]), ("refused", None, 6.5))
    check("copies inside", [s["copy_gbs"] for s in got["singles"]], [700.0, 701.0])
    refused("a row is missing", P2P.replace("     1   6.75 701.00\n", ""), ":12:", "row 1")
    refused("a cell is glued", P2P.replace("1   6.75 701.00", "1   6.75701.00"), ":15:", "1 cells")


NVB = """nvbandwidth Version: v0.8
CUDA Runtime Version: 12080
Driver Version: 570.86
Device 0: GPU X (00000000:1A:00)
Device 1: GPU X (00000000:1B:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     12.50     12.25
SUM host_to_device_memcpy_ce 24.75

Running device_to_device_memcpy_write_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A     10.50
 1     10.25       N/A
SUM device_to_device_memcpy_write_ce 20.75
"""


def test_nvbandwidth():
    got = gv100_json("import", write("nvb.txt", NVB))["sources"][0]
    check("to the device", [s["to_device_gbs"] for s in got["singles"]], [12.5, 12.25])
    check("writes", [(p["from"], p["to"], p["write_gbs"]) for p in got["pairs"]], [(0, 1, 10.5), (1, 0, 10.25)])
    refused("N/A of a pair", NVB.replace("10.50", "N/A"), ":16:", "N/A")
    refused("cut", NVB[: NVB.index("SUM device")], ":17:", "cut")
    tests = [
        {"name": "device_to_host_memcpy_ce", "status": "Passed", "bandwidth_description": "x", "bandwidth_matrix": [["12.5", "12.25"]]},
        {"name": "device_to_device_memcpy_read_ce", "status": "Passed", "bandwidth_description": "x", "bandwidth_matrix": [["N/A", "10.5"], ["10.25", "N/A"]]},
        {"name": "device_to_device_memcpy_read_sm", "status": "Waived"},
    ]
    text = json.dumps({"nvbandwidth": {"Driver Version": "570.86", "testcases": tests}}, indent=1)
    got = gv100_json("import", write("nvb.json", text))["sources"][0]
    check("JSON to the host", [s["to_host_gbs"] for s in got["singles"]], [12.5, 12.25])
    check("JSON reads", [p["read_gbs"] for p in got["pairs"]], [10.5, 10.25])
    refused("JSON cut", text[:-9], ":", "cut")


def run_json(**change):
    half = {"time": 150.0, "alg_bw": 6.990507, "bus_bw": 6.990507, "nwrong": 0.0}
    device = {"rank": 0, "group": 0, "pid": 1, "hostname": "h", "device": 0, "device_hex": "0000:1a:00", "device_info": "GPU X"}
    run = {
        "version": 1,
        "args": ["./build/all_reduce_perf", "-b", "1M"],
        "env": ["HOME=/root", "NCCL_ALGO=Tree"],
        "nccl_version": 22809,
        "config": {
            "nthreads": 1, "ngpus": 1, "minimum_bytes": 1048576, "maximum_bytes": 1048576, "step_factor": 2, "validation": 1,
            "devices": [device, {**device, "rank": 1, "device": 1, "device_hex": "0000:1b:00"}],
        },
        "results": [
            {"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "    -1", "out_of_place": half, "in_place": {**half, **change.pop("half", {})}}
        ],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 6.990507, "okay": "unchecked"},
    }
    run.update(change)
    return json.dumps(run, indent=1)


def test_nccl_tests_json():
    got = gv100_json("import", write("run.json", run_json()))["sources"][0]
    sample = got["samples"][0]
    check("figure", (sample["op"], sample["bytes"], sample["busbw_gbs"]), ("AllReduce", 1 << 20, 6.990507))
    check("algorithm, NCCL, line", (sample["algorithm"], got["nccl"], sample["line"] > 40), ("TREE", "2.28.9", True))
    refused("wrong", run_json(half={"nwrong": 4.0}), ":", "4 wrong elements")
    refused("unchecked", run_json(half={"nwrong": None}), ":", "N/A")
    refused("out of bounds", run_json(out_of_bounds={"count": 1, "okay": "false"}), ":", "wrong")
    refused("no end", run_json(out_of_bounds=None), ":", "out of bounds")


def test_csv():
    good = "gpus,op,bytes,busbw_gbs,edit\n0-1,AllReduce,1M,6.5,none\n0-1,AllReduce,1M,7.5,p2p-level\n"
    _, _, text = profile(write("g.csv", good), write("topo.txt", TOPO))
    check_in("both variants", "edit: p2p-level", text)
    refused("a column that is none", good.replace("edit", "edits"), ":1:25", "edits")
    refused("a figure that is none", good.replace("6.5", "fast"), ":2:18", "no figure")
    refused("a word that is none", good.replace("p2p-level", "best"), ":3:", "edit")
    refused("a cell too few", good.replace(",none", ""), ":2:", "4 cells")
    head = "collective,size_bytes,algorithm,protocol,channels,nodes,ranks,pipeOps,regBuff,bandwidth_gbps,latency_us\n"
    data = head + "allreduce,1048576,ring,simple,2,1,2,-1,-1,6.99,150\n"
    got = gv100_json("import", write("data.csv", data), "--gpus", "0-1")["sources"][0]["samples"][0]
    check("measured for the tuner", (got["algorithm"], got["channels"], round(got["busbw_gbs"], 2)), ("RING", 2, 6.99))
    refused("which GPUs", data, ":2:", "--gpus")
    refused("bandwidth and time disagree", data.replace("6.99", "9.99"), ":2:", "neither", "--gpus", "0-1")


TUNER = """# what our ring runs gave
allreduce,0,65536,tree,ll,2,1,2,-1,-1

allreduce,65537,1048576,ring,simple,-1,1,-1
allreduce, 1048577, -1, ring, ll128, 4, -1, -1, -1
  # four hosts
allgather,0,4294967295,pat,simple,8,4,32,1,0
"""
# a change of one row, where it is seen, and why it is refused
TUNER_BAD = [
    (("tree,ll,2", "trees,ll,2"), ":2:19", "did you mean 'tree'"),
    (("tree,ll,2", "Tree,ll,2"), ":2:19", "did you mean 'tree'"),
    (("tree,ll,2", "tree,ll12,2"), ":2:24", "it may be ll, ll128, simple"),
    (("allreduce,0", "alltoall,0"), ":2:1", "it may be broadcast"),
    (("0,65536", "0,64K"), ":2:13", "no whole number of bytes"),
    (("0,65536", "-1,65536"), ":2:11", "no whole number of bytes"),
    (("0,65536", "70000,65536"), ":2:17", "less than min_bytes"),
    (("0,65536", "0,99999999999999999999"), ":2:13", "no whole number of bytes"),
    (("ll,2,1", "ll,0,1"), ":2:27", "NCCL's own"),
    (("ll,2,1", "ll,65,1"), ":2:27", "1 to 64"),
    (("ll,2,1,2", "ll,2,0,2"), ":2:29", "-1 (any)"),
    (("ll,2,1,2", "ll,2,1,two"), ":2:31", "-1 (any)"),
    (("ll,2,1,2", "ll,2,4,2"), ":2:31", "less than nNodes"),
    (("1,2,-1,-1", "1,2,-1,2"), ":2:36", "regBuff"),
    (("1,2,-1,-1", "1,2,-1,-1,5"), ":2:", "11 cells"),
    (("-1,1,-1\n", "-1,1\n"), ":4:", "7 cells"),
    (("2,1,2,-1,-1\n\nallreduce,65537", "2,1,-1,-1,-1\n\nallreduce,65536"), ":4:11", "those of line 2"),
]


def test_tuner():
    """The configuration of NCCL's example tuner: rows of the profile, not used where measured."""
    path = write("tuner.conf", TUNER)
    got = gv100_json("import", path)
    (source,) = got["sources"]
    first, _, open_end, hosts = source["tuner"]
    check("format, profile", (source["format"], got["profile"]), ("nccl-tuner", None))
    check("a row", first, {"op": "AllReduce", "min_bytes": 0, "max_bytes": 65536, "algorithm": "TREE", "protocol": "LL",
                           "channels": 2, "nodes": 1, "ranks": 2, "line": 2})
    check("any", open_end, {"op": "AllReduce", "min_bytes": 1048577, "algorithm": "RING", "protocol": "LL128",
                            "channels": 4, "line": 5})
    check("hosts", [hosts[k] for k in ("nodes", "ranks", "pipe_ops", "registered")], [4, 32, 1, 0])
    check("remarks", [(n["line"], n["text"][:20]) for n in source["notes"]],
          [(7, "for 4 nodes: kept, a"), (7, "it asks for a number"), (7, "max_bytes is 4 GiB -")])
    _, _, text = profile(path, write("topo.txt", TOPO))
    check_in("its place", 'source: "tuner.conf:2"', text)
    check_in("provenance", "kind: imported", text)
    out = os.path.join(TMP.name, "out.yaml")
    rows = gv100_json("explain", "--profile", out, "--gpus", "0,1")["rows"]
    check("used", [(r["operation"], r["max_bytes"], r["algorithm"], r["gain"]) for r in rows],
          [("AllReduce", 65536, "TREE", None), ("AllReduce", 1048576, "RING", None), ("AllReduce", None, "RING", None)])
    check_in("says so", "imported, not measured", gv100("explain", "--profile", out, "--gpus", "0,1").stdout)
    shown = gv100_json("show", "--profile", out)["tuner"]
    check("shown", [(r["max_bytes"], r["nodes"], r["used"], r["source"]) for r in shown],
          [(65536, 1, True, "tuner.conf:2"), (1048576, 1, True, "tuner.conf:4"), (None, None, True, "tuner.conf:5"),
           (4294967295, 4, False, "tuner.conf:7")])
    check_in("shown as text", "never used", gv100("show", "--profile", out).stdout)
    check_in("once", "a row already", gv100("import", path, "--into", out).stderr)
    heading = "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n"
    row = "allreduce,0,9,ring,ll,-1,-1,-1\n"
    check("a heading", len(gv100_json("import", write("h.conf", heading + row))["sources"][0]["tuner"]), 1)
    narrow = "allreduce,0,99,ring,ll,-1,1,2\nallreduce,0,99,tree,ll,-1,1,-1\n"
    check("narrow before wide", len(gv100_json("import", write("n.conf", narrow))["sources"][0]["tuner"]), 2)
    refused("wide before narrow", "".join(reversed(narrow.splitlines(True))), ":2:11", "those of line 1")
    check("empty cells behind", len(gv100_json("import", write("s.conf", row.replace("\n", ",,\n")))["sources"][0]["tuner"]), 1)
    refused("quotes", '"allreduce","0","9","ring","ll","-1","-1","-1"\n', ":1:1", "did you mean 'allreduce'")
    refused("a row twice", row + row, ":2:", "those of line 1")
    refused("remarks alone", "# allreduce,0,9,ring,ll,-1,-1,-1\n", "", "none of the formats")
    done = gv100("import", write("r.conf", row), "-o", os.path.join(TMP.name, "none.yaml"))
    check_in("no GPU, and what to do", "names a GPU: add them to a profile with --into", done.stderr)
    for (old, new), place, reason in TUNER_BAD:
        refused(f"{old} to {new}", TUNER.replace(old, new, 1), place, reason)


def test_usage():
    for args, words in (
        (["import"], "name the files"),
        (["import", "x", "--format", "ncl-tests"], "did you mean 'nccl-tests'"),
        (["import", "x", "--op", "AllReduc"], "did you mean 'AllReduce'"),
        (["import", "x", "--gpus", "0-"], "end of the range"),
    ):
        done = gv100(*args, env=environment())
        check(f"{args} status", done.returncode, 2)
        check_in(f"{args}", words, done.stderr)
    check("no such file", gv100("import", "/nonexistent").returncode, 3)
    check("a folder", gv100("import", TMP.name).returncode, 3)


for test in [value for name, value in list(globals().items()) if name.startswith("test_")]:
    test()
finish()
