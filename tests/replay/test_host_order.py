"""The NCCL host against what each release is known to do, with a plugin that only records."""
import tempfile

from gvhost import *

# release: (env, net, tuner version; whether the tuner comes before NCCL's own model)
ORDER = {
    "2.19.3": (0, 7, 1, False),
    "2.20.5": (0, 8, 1, False),
    "2.21.5": (0, 8, 2, False),
    "2.22.3": (0, 8, 3, False),
    "2.23.4": (0, 8, 3, False),
    "2.24.3": (0, 9, 4, False),
    "2.26.5": (0, 10, 4, False),
    "2.27.7": (0, 10, 4, False),
    "2.28.3": (0, 11, 5, True),
    "2.28.9": (1, 11, 5, True),
    "2.29.7": (1, 11, 5, True),
    "2.30.4": (1, 12, 6, True),
    "2.30.7": (2, 12, 6, True),
    "2.32.3": (2, 12, 6, True),
}
MARKS = ("env.init", "net.", "getenv NCCL_TOPO_FILE", "getenv NCCL_GRAPH_FILE", "tuner.",
         "getenv NCCL_ALGO")


def marks(comm):
    return [" ".join(what.split()[:2]) if what.startswith("getenv") else
            " ".join(what.split()[:2][:1 + what.startswith(("net.init", "tuner.init", "env.init"))])
            for what in trace(comm) if what.startswith(MARKS)]


def recorder(release, **env):
    """Every slot filled, each in the way that the release understands."""
    env = {k: str(v) for k, v in env.items()}
    env.setdefault("NCCL_TUNER_PLUGIN", RECORDER)
    # up to 2.20 a net plugin has to be named libnccl-net-NAME.so, which no path fits
    if release >= "2.21":
        env.setdefault("NCCL_NET_PLUGIN", RECORDER)
    given = "env" if release >= "2.28.7" else "tuner"
    return ["--release", release, "--given", given, "--plugin", RECORDER, "--trace"], env


for release, (env_v, net_v, tuner_v, first) in ORDER.items():
    args, env = recorder(release)
    comm = host(*args, "--api", "rank", "--comm", "0,1", env=env, status=0)[0]
    want = [f"env.init v{env_v}"] if env_v else []
    if release >= "2.21":
        want += [f"net.init v{net_v}", "net.devices", "net.getProperties"]
        if release >= "2.28":
            want += ["net.finalize"]
    want += ["getenv NCCL_TOPO_FILE", "getenv NCCL_GRAPH_FILE", "getenv NCCL_GRAPH_FILE"]
    tuner = [f"tuner.init v{tuner_v}"]
    want += tuner + ["getenv NCCL_ALGO"] if first else ["getenv NCCL_ALGO"] + tuner
    want += ["tuner.getCollInfo", "tuner.finalize" if tuner_v >= 5 else "tuner.destroy"]
    got = marks(comm)
    # a process's first rank initialises the plugin up to 2.27, and counts its devices later;
    # which rank it is varies
    once = "net." if release < "2.28" else "net.devices"
    got = [m for m in got if not m.startswith(once)]
    want = [m for m in want if not m.startswith(once)]
    check(f"{release}: order", got, want)

# What is opened for NCCL_TUNER_PLUGIN. None: not set.
NAMES = [
    ("2.19.3", None, []),
    ("2.19.3", "nosuch", ["nosuch LAZY"]),
    ("2.23.4", None, ["libnccl-tuner.so LAZY", "libnccl-net.so LAZY"]),
    ("2.23.4", "nosuch", ["nosuch LAZY", "libnccl-tuner-nosuch.so LAZY", "libnccl-net.so LAZY"]),
    ("2.26.5", "nosuch", ["nosuch NOW", "libnccl-tuner-nosuch.so NOW"]),
    ("2.27.3", "nosuch", ["libnccl-tuner-nosuch.so NOW"]),
    ("2.27.3", "libnosuch.so", ["libnosuch.so NOW"]),
    ("2.27.3", "/no/such.so", ["libnccl-tuner-/no/such.so.so NOW"]),
    ("2.27.7", "/no/such.so", ["/no/such.so NOW"]),
    ("2.28.9", "nosuch", ["nosuch NOW", "libnccl-tuner-nosuch.so NOW"]),
    ("2.28.9", "libnosuch.so", ["libnosuch.so NOW"]),
    ("2.28.9", None, ["libnccl-tuner.so NOW"]),
    ("2.28.9", "NONE", []),
    ("2.27.7", "none", ["none NOW", "libnccl-tuner-none.so NOW"]),
]
for release, value, want in NAMES:
    env = {} if value is None else {"NCCL_TUNER_PLUGIN": value}
    comm = host("--release", release, "--no-plugin", "--trace", "--comm", "0,1", env=env, status=0)[0]
    what = [line["what"] for line in comm["trace"]]
    start = next((i for i, w in enumerate(what) if w == "getenv NCCL_TUNER_PLUGIN"), len(what))
    check(f"{release} NCCL_TUNER_PLUGIN={value}",
          [w[7:] for w in what[start:] if w.startswith("dlopen")], want)

# Which thread reads the topology file: the caller's, or one that NCCL makes.
THREADS = [
    ("2.23.4", "rank", True), ("2.23.4", "config", False), ("2.23.4", "all", False),
    ("2.27.7", "config", False), ("2.28.3", "config", True), ("2.28.9", "rank", True),
    ("2.28.9", "config", True), ("2.28.9", "all", False), ("2.30.7", "scalable", True),
]
for release, api, same in THREADS:
    comm = host("--release", release, "--no-plugin", "--trace", "--api", api, "--comm", "0,1",
                status=0)[0]
    callers = {line["thread"] for line in comm["trace"] if line["what"] == "getenv NCCL_NET"}
    readers = {line["thread"] for line in comm["trace"]
               if line["what"] == "getenv NCCL_TOPO_FILE"}
    check(f"{release} {api}: read in the caller's thread", bool(callers & readers), same)

# (release, cells or pair, algorithm, protocol); None: the AllReduce fails
CELLS = [
    ("2.23.4", "", "RING", "SIMPLE"),
    ("2.28.9", "", "RING", "SIMPLE"),
    ("2.28.9", "0,2,0", "TREE", "SIMPLE"),
    ("2.28.9", "1,0,0", "RING", "LL"),
    ("2.28.9", "1,2,1e9 0,2,1e8", "RING", "LL"),
    ("2.28.9", "1,2,-1 0,2,5 0,0,6 1,0,7", "TREE", "SIMPLE"),    # -1 is "not available"
    ("2.32.3", "1,0,-1 0,2,0", "RING", "LL"),                    # and from 2.31 the winner
    ("2.28.9", "6,2,0", "PAT", "SIMPLE"),                        # a cell NCCL did not offer
    ("2.32.3", "6,2,0", "RING", "SIMPLE"),                       # not taken back from 2.31
    ("2.28.9", "0,0,4e9 0,2,4e9 1,0,4e9 1,2,4e9", None, None),   # over the limit up to 2.28
    ("2.30.7", "0,0,4e9 0,2,5e9 1,0,4e9 1,2,5e9", "TREE", "LL"),
    ("2.22.3", "0,2,0", "TREE", "SIMPLE"),
]
for release, cells, algorithm, protocol in CELLS:
    args, env = recorder(release, GVREC_CELLS=cells)
    comm = host(*args, "--comm", "0-5", env=env)[0]
    check(f"{release} cells '{cells}'", (comm["algorithm"], comm["protocol"], comm["error"] is None),
          (algorithm, protocol, algorithm is not None))

PAIRS = [("2.19.3", "0,0", "TREE", "LL"), ("2.21.5", "0,2", "TREE", "SIMPLE"),
         ("2.19.3", "0,-1", "RING", "SIMPLE")]
for release, pair, algorithm, protocol in PAIRS:
    args, env = recorder(release, GVREC_PAIR=pair)
    comm = host(*args, "--comm", "0-5", env=env)[0]
    check(f"{release} pair {pair}", (comm["algorithm"], comm["protocol"]), (algorithm, protocol))

# nChannels 0 leaves NCCL's; more than NCCL has is cut from 2.20 on
for release, channels, want in [("2.28.9", 0, 2), ("2.28.9", 1, 1), ("2.28.9", 30, 2),
                                ("2.19.3", 30, 30)]:
    args, env = recorder(release, GVREC_CHANNELS=channels)
    comm = host(*args, "--comm", "0-5", env=env, status=0)[0]
    check(f"{release} nChannels {channels}", comm["channels"], want)

# An error return and what it does to the job.
ERRORS = [
    ("2.28.9", dict(GVREC_TUNER_INIT=2), "the tuner's init returned 2"),
    ("2.19.3", dict(GVREC_TUNER_INIT=3), "the tuner's init returned 3"),
    ("2.28.9", dict(GVREC_TUNER_INIT=7), None),  # InProgress passes as success
    ("2.28.9", dict(GVREC_COLL=3), "the tuner's getCollInfo returned 3"),
    ("2.23.4", dict(GVREC_COLL=3), "the tuner's getCollInfo returned 3"),
    ("2.28.9", dict(GVREC_ENV_INIT=3), "internal error"),
    ("2.28.9", dict(GVREC_NET_INIT=3), None),
    ("2.28.9", dict(GVREC_NET_DEVICES=0), None),
    ("2.28.9", dict(GVREC_NET_CTX=1, GVREC_NET_INIT=3),
     "crash: the built-in network frees a context that a plugin left behind"),
    ("2.28.9", dict(GVREC_UNSTABLE=1),
     "the env plugin changed its answer for NCCL_LL128_NTHREADS before it was asked again"),
    ("2.28.9", dict(NCCL_NET="nosuch"), "Failed to initialize any NET plugin (NCCL_NET=nosuch)"),
]
for release, told, want in ERRORS:
    args, env = recorder(release, **told)
    comm = host(*args, "--comm", "0-3", env=env, status=1 if want else 0)[0]
    check(f"{release} {told}", comm["error"], want)

# CUDA maps 8 peers a GPU: a bridge over ten GPUs works until the first all-to-all.
def bridged():
    """The ten GPUs of one CPU under one bridge: all pairs P2P."""
    pci = '<pci busid="0000:{:02x}:00.0" class="{}" link_speed="8.0 GT/s PCIe" link_width="{}">'
    gpus = "".join(pci.format(i + 2, "0x030200", 16) + f'<gpu dev="{i}" sm="70" gdr="1"></gpu></pci>'
                   for i in range(10))
    return ('<system version="1"><cpu numaid="0" affinity="ffffffff" arch="x86_64" '
            'vendor="GenuineIntel" familyid="6" modelid="85">' + pci.format(1, "0x060400", 32) + gpus +
            "</pci></cpu></system>")


with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
    file.write(bridged())
    file.flush()
    given = ("--topology", file.name, "--no-plugin", "--alltoall")
    for gpus, status in (("0-8", 0), ("0-9", 1)):
        for mode in ("threads", "processes"):
            comm = host(*given, "--mode", mode, "--comm", gpus, status=status)[0]
            check(f"bridge over {gpus} {mode}: ring", (kind(comm), comm["error"]), ("p2p", None))
            check(f"bridge over {gpus} {mode}: all-to-all", "711" in comm["alltoall"], status == 1)
    # the limit holds for the GPU, over all communicators of its process: GPU 0 has 1, 4, 5, 8 and 9
    # from the rings, 2 and 3 from the first exchange, 6 and 7 are too many
    comms = host(*given, "--comm", "0-4", "--comm", "0,5-8", "--comm", "0,9", status=1)
    check("peers add up", [c["alltoall"] == "ok" for c in comms], [True, False, True])

# The net slot is asked for every communicator from 2.28 on, once per process before.
for release, want in [("2.23.4", 1), ("2.27.7", 1), ("2.28.3", 6), ("2.28.9", 6), ("2.32.3", 6)]:
    args, env = recorder(release)
    comms = host(*args, "--comm", "0-2", "--comm", "0-2", env=env, status=0)
    inits = sum(line["what"].startswith("net.init") for comm in comms for line in comm["trace"])
    check(f"{release}: net inits of 2 communicators of 3 ranks", inits, want)

# A dump makes NCCL build the topology twice from 2.24 on.
for release, want in [("2.23.4", 1), ("2.24.3", 2), ("2.28.9", 2)]:
    comm = host("--release", release, "--no-plugin", "--trace", "--comm", "0,1",
                env={"NCCL_TOPO_DUMP_FILE": "/dev/null"}, status=0)[0]
    check(f"{release}: lookups with a dump", trace(comm).count("getenv NCCL_TOPO_FILE"), want)

# Splits share their parent's network from 2.28.7 on; the file is asked for all the same.
for release, share, nets in [("2.28.9", [], 2), ("2.28.9", ["--share"], 1), ("2.28.3", ["--share"], 2)]:
    args, env = recorder(release)
    comms = host(*args, *share, "--comm", "0-3", "--split", "0:0,1", env=env, status=0)
    names = [marks(comm) for comm in comms]
    check(f"{release} {share}: net inits", sum(m.startswith("net.init") for n in names for m in n), nets)
    check(f"{release} {share}: lookups",
          [n.count("getenv NCCL_TOPO_FILE") for n in names], [1, 1])

# Ids of children: 2.28.9 repeats them in shrink, up to 2.23 in splits with the same color.
for release, option, same in [("2.28.9", "--shrink", True), ("2.28.9", "--split", False),
                              ("2.23.4", "--split", True)]:
    lists = ("0:3", "0:3") if option == "--shrink" else ("0:0-2", "0:0-2")
    comms = host("--release", release, "--no-plugin", "--comm", "0-3", option, lists[0], option,
                 lists[1], status=0)
    check(f"{release} {option}: ids repeat", comms[1]["comm_id"] == comms[2]["comm_id"], same)

done()
