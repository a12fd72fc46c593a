"""What the doctor says of hosts that are made here: settings in files, sysfs trees, /dev/shm, and
NCCLs of the testbench. Each row is one thing put in place and the line that must come of it."""

import json
import os
import shutil
import struct
import tempfile

from gv_cli import check, check_in, environment, finish, gv100, sysfs

LIB = os.environ["GV_LIB_DIR"]
GOOD_GRAPH = '<graphs version="1">\n<graph id="0">\n<channel><gpu dev="0"/><gpu dev="a"/></channel>\n</graph>\n</graphs>\n'

# variable, value, where it stands, verdict, words of the finding
SETTINGS = [
    ("NCCL_P2P_LEVEL", "PHB", "env", "no", "wins over the profile"),
    ("NCCL_P2P_LEVEL", "PHB", "conf", "no", "wins over the profile"),
    ("NCCL_P2P_LEVEL", "PHB", "home", "no", "wins over the profile"),
    ("NCCL_P2P_LEVEL", "PHB", "etc", "no", "wins over the profile"),
    ("NCCL_P2P_DISABLE", "1", "etc", "no", "wins over the profile"),
    ("NCCL_SHM_DISABLE", "1", "env", "no", "wins over the profile"),
    ("NCCL_ALGO", "Ring", "home", "warn", "no algorithm or protocol"),
    ("NCCL_NET", "AWS Libfabric", "env", "warn", "without a proof of one node"),
    ("NCCL_NET", "Socket", "env", "ok", "does not touch"),
    ("NCCL_NET_PLUGIN", "ofi", "etc", "warn", "without a proof of one node"),
    ("NCCL_NET_PLUGIN", "none", "env", "ok", "does not touch"),
    ("NCCL_TUNER_PLUGIN", "other", "etc", "warn", "another tuner"),
    ("NCCL_TUNER_PLUGIN", "/x/libnccl-tuner-gv100.so", "etc", "ok", "names this plugin"),
    ("NCCL_MAX_NCHANNELS", "4", "env", "note", "measured without it"),
    ("NCCL_DEBUG", "WARN", "etc", "ok", "does not touch"),
    ("GV100_DISABLE", "1", "env", "no", "switches the plugin off"),
    ("NCCL_NVB_DISABLE", "0", "env", "warn", "two links"),
    ("NCCL_NVB_DISABLE", "1", "env", "ok", "does not touch"),
]

# graph file, line of the finding or None, words
GRAPHS = [
    (GOOD_GRAPH, None, ""),
    (GOOD_GRAPH.replace('"a"', '"0xb"'), 3, "names GPU 0xb, which is not on this machine"),
    (GOOD_GRAPH.replace('"a"', '"11"'), 3, "names GPU 11"),
    (GOOD_GRAPH.replace('<gpu dev="a"/>', "<gpu/>"), 3, "without a device number"),
    (GOOD_GRAPH.replace('version="1"', 'version="2"'), 1, "NCCL refuses"),
    (GOOD_GRAPH[:-20], 3, "no whole graph file"),
    ("", 1, "no whole graph file"),
    (None, 0, "No such file"),
]

# NCCL, GV100 slots, what is seen in the process
LOADS = [
    ("2.19.3", (1, 7, None), "asks the plugin for its variables (getenv)"),
    ("2.23.4", (3, 8, None), "asks the plugin for its variables (getenv)"),
    ("2.27.7", (4, 10, None), "asks the plugin for its variables (getenv)"),
    ("2.28.9", (5, 11, 1), "loaded the plugin (env v1)"),
    ("2.30.7", (6, 12, 2), "loaded the plugin (env v2)"),
]


class Host:
    """A folder with etc, dev/shm and a home, and the command run in it."""

    def __init__(self, folder, tree=None):
        self.folder, self.tree = folder, tree or TREE
        for part in ("etc/systemd", "dev/shm", "home", "lib", "run"):
            os.makedirs(os.path.join(folder, part), exist_ok=True)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def environment(self, **more):
        env = environment(
            HOME=os.path.join(self.folder, "home"),
            GV100_ROOT=self.folder,
            GV100_SYSFS=self.tree,
            GV100_PLUGIN=os.path.join(LIB, "libnccl-tuner-gv100.so"),
            GV100_ASSUME_VERIFIED="1",
            PATH="/usr/bin:/bin",
        )
        env.update({name: value for name, value in more.items() if value is not None})
        return {name: value for name, value in env.items() if value != ""}

    def doctor(self, *args, **more):
        done = gv100("doctor", "--json", *(args or ("--nccl", "2.28.9")), env=self.environment(**more))
        result = json.loads(done.stdout)
        check(f"{args} status", done.returncode, 0 if result["ready"] else 1)
        check(f"{args} ready", result["ready"], not any(s["verdict"] == "no" for s in result["steps"]))
        return result

    def nccl(self, release):
        """The testbench's NCCL under the name that a package gives it."""
        path = os.path.join(self.folder, "lib", f"libnccl.so.{release}")
        shutil.copy(os.path.join(LIB, "host/libnccl.so.2"), path)
        return path


def step(result, name):
    return [s for s in result["steps"] if s["step"] == name]


def test_ready(folder):
    result = Host(folder).doctor()
    check("ready", result["ready"], True)
    check("profile", result["profile"], "4028")
    check_in("plans", "0,5 and 0-5 and 0-9", step(result, "plans")[0]["text"])


def test_settings(folder):
    for i, (name, value, where, verdict, words) in enumerate(SETTINGS):
        host = Host(os.path.join(folder, str(i)))
        text, env, file = f"# first\n{name}={value}\n", {}, None
        if where == "env":
            env[name] = value
        elif where == "conf":
            file = env["NCCL_CONF_FILE"] = host.write("some.conf", text)
            host.write("home/.nccl.conf", f"{name}=other\n")  # not read then
        else:
            file = host.write("home/.nccl.conf" if where == "home" else "etc/nccl.conf", text)
        result = host.doctor(**env)
        found = [s for s in step(result, "settings") if s["text"].startswith(name + "=")]
        row = f"row {i} {name}={value} in {where}"
        check(row, [(s["verdict"], s["file"], s["line"]) for s in found], [(verdict, file, 2 if file else None)])
        check_in(row, words, found[0]["text"] if found else "")


def test_who_wins(folder):
    """The environment before ~/.nccl.conf before /etc/nccl.conf, as setenv without overwriting."""
    host = Host(folder)
    host.write("etc/nccl.conf", "NCCL_ALGO=Tree\nNCCL_PROTO=LL\n")
    home = host.write("home/.nccl.conf", "NCCL_ALGO=Ring\n")
    values = {s["name"]: (s["value"], s["file"]) for s in host.doctor(NCCL_PROTO="Simple")["settings"]}
    check("home before etc", values["NCCL_ALGO"], ("Ring", home))
    check("environment before all", values["NCCL_PROTO"], ("Simple", None))
    result = host.doctor(NCCL_CONF_FILE="/nonexistent/nccl.conf")
    check_in("a conf file that is not there", "/nonexistent/nccl.conf", str(step(result, "settings")))


def test_graph_files(folder):
    for i, (text, line, words) in enumerate(GRAPHS):
        host = Host(os.path.join(folder, str(i)))
        path = host.write("graph.xml", text) if text is not None else os.path.join(folder, "none.xml")
        found = [s for s in step(host.doctor(NCCL_GRAPH_FILE=path), "settings") if s["file"] == path]
        row = f"row {i}"
        check(row, [(s["verdict"], s["line"] or 0) for s in found], [] if line is None else [("no", line)])
        check_in(row, words, found[0]["text"] if found else "")


def test_topology_files(folder):
    host = Host(folder)
    cut = host.write("cut.xml", '<system version="1">\n<cpu numaid="0">\n')
    found = [s for s in step(host.doctor(NCCL_TOPO_FILE=cut), "settings") if s["file"] == cut]
    check("a cut file", [s["verdict"] for s in found], ["no"])
    result = host.doctor(NCCL_TOPO_FILE="/nonexistent.xml")
    check_in("a file that is not there", "without a word", str(step(result, "settings")))


def test_loading(folder):
    host = Host(folder)
    for release, slots, words in LOADS:
        result = host.doctor("--nccl", host.nccl(release), GV_HOST_RELEASE=release)
        nccl = result["nccl"][0]
        check(f"{release} slots", tuple(nccl["slots"].values()), slots)
        check(f"{release} loaded", nccl["loaded"], True)
        check_in(f"{release} words", words, step(result, "load")[0]["text"])
    other = dict(GV_HOST_RELEASE="2.28.9", NCCL_ENV_PLUGIN="/nonexistent/other.so")
    result = host.doctor("--nccl", host.nccl("2.28.7"), **other)
    check("another env plugin keeps it out", result["nccl"][0]["loaded"], False)
    check("and so it is not ready", result["ready"], False)
    unnamed = os.path.join(folder, "lib/libnccl.so.2")
    shutil.copy(os.path.join(LIB, "host/libnccl.so.2"), unnamed)
    nccl = host.doctor("--nccl", unnamed, GV_HOST_RELEASE="2.28.9")["nccl"][0]
    check("a release that only the library itself tells", nccl["version"], "2.28.9")
    broken = host.write("lib/libnccl.so.2.29.1", "")
    check("no library", host.doctor("--nccl", broken)["ready"], False)


def test_profile_and_stamp(folder):
    host = Host(folder)
    result = host.doctor(GV100_ASSUME_VERIFIED="")
    check("no stamp", [s["verdict"] for s in step(result, "verified")], ["no"])
    check_in("what to do", "gv100 verify", step(result, "verified")[0]["text"])
    tree = sysfs()
    board = os.path.realpath(os.path.join(tree, "bus/pci/devices/0000:1a:00.0/device"))
    with open(board, "w", encoding="utf-8") as f:
        f.write("0x1df6\n")
    found = step(Host(folder, tree).doctor(), "profile")
    check("another board", [s["verdict"] for s in found], ["no"])
    check_in("the field that differs", "GPU 0", found[0]["text"])
    empty = os.path.join(folder, "sys")
    os.makedirs(os.path.join(empty, "bus/pci/devices"))
    check("no GPU", step(Host(folder, empty).doctor(), "gpus")[0]["verdict"], "no")


def test_logind(folder):
    rows = [
        # logind.conf, a drop-in, verdict
        (None, None, "ok"),
        ("", None, "note"),
        ("RemoveIPC=no\n", None, "ok"),
        ("#RemoveIPC=no\n", None, "note"),
        ("[Login]\nRemoveIPC=no\n", "[Login]\nRemoveIPC=yes\n", "note"),
        ("RemoveIPC=yes\n", "RemoveIPC=0\n", "ok"),
    ]
    for i, (main, drop, verdict) in enumerate(rows):
        host = Host(os.path.join(folder, str(i)))
        if main is not None:
            os.makedirs(os.path.join(host.folder, "run/systemd/seats"))
            host.write("etc/systemd/logind.conf", main)
        if drop is not None:
            host.write("etc/systemd/logind.conf.d/10-x.conf", drop)
        check(f"row {i}", step(host.doctor(), "ipc")[0]["verdict"], verdict)


def config_space(control):
    """A bridge's 4 KiB: one other extended capability, then ACS with this control register."""
    data = bytearray(4096)
    struct.pack_into("<I", data, 0x100, 0x148 << 20 | 1 << 16 | 0x0001)
    struct.pack_into("<IHH", data, 0x148, 1 << 16 | 0x000D, 0x1F, control)
    return bytes(data)


def bridges_of(tree, bus_id):
    path = os.path.dirname(os.path.realpath(os.path.join(tree, "bus/pci/devices", bus_id)))
    while os.path.basename(path).count(":") == 2:
        yield path
        path = os.path.dirname(path)


def test_acs_and_iommu(folder):
    tree = sysfs()
    host = Host(folder, tree)
    check("nothing to read", step(host.doctor(), "acs")[0]["verdict"], "unknown")
    devices = os.listdir(os.path.join(tree, "bus/pci/devices"))
    bridges = {b for d in devices for b in bridges_of(tree, d)}
    for control, verdict in [(0, "ok"), (0x1D, "warn"), (0x01, "ok"), (0x08, "warn")]:
        for bridge in bridges:
            with open(os.path.join(bridge, "config"), "wb") as f:
                f.write(config_space(control))
        found = step(host.doctor(), "acs")[0]
        check(f"control {control:#x}", found["verdict"], verdict)
    check_in("how to switch it off", "setpci -s 0000:", found["next"])
    with open(os.path.join(next(iter(bridges)), "config"), "wb") as f:
        f.write(config_space(0)[:64])
    for kind, verdict in [("identity", "ok"), ("DMA-FQ", "warn")]:
        for bus_id in devices:
            group = os.path.join(os.path.realpath(os.path.join(tree, "bus/pci/devices", bus_id)), "iommu_group")
            os.makedirs(group, exist_ok=True)
            with open(os.path.join(group, "type"), "w", encoding="utf-8") as f:
                f.write(kind + "\n")
        check(kind, step(host.doctor(), "iommu")[0]["verdict"], verdict)


def test_cuda(folder):
    """CUDA's own order and P2P, by the virtual driver of the reference machine."""
    env = dict(LD_LIBRARY_PATH=os.path.join(LIB, "virtual"), GV_VIRTUAL_MACHINE=MACHINE)
    result = Host(folder).doctor(**env)
    check("order", [s["verdict"] for s in step(result, "order")], ["ok"])
    check_in("pairs", "45 of 55 pairs", step(result, "p2p")[0]["text"])
    check_in("8 peers", "9 peers", step(result, "p2p")[1]["text"])
    result = Host(folder).doctor(CUDA_VISIBLE_DEVICES="5,0", **env)
    check_in("another order", "GPUs 5,0", step(result, "order")[0]["text"])


def test_ctypes(folder):
    host = Host(folder)
    site = os.path.join(folder, "site")
    path = os.path.join(site, "nvidia/nccl/lib/libnccl.so.2")
    real = host.nccl("2.27.3")
    os.makedirs(os.path.dirname(path))
    os.symlink(real, path)
    check("nobody does", step(host.doctor("--nccl", path), "ctypes"), [])
    host.write("site/vllm/distributed/device_communicators/pynccl_wrapper.py", "")
    check_in("vLLM", "by ctypes", str(step(host.doctor("--nccl", path), "ctypes")))


def test_several(folder):
    """Python's own NCCL and the loader's, of releases that need different variables."""
    host, places = Host(folder), {}
    for release, place in (("2.27.3", "site/nvidia/nccl/lib"), ("2.28.9", "ld")):
        head = b"\x7fELF\x02\x01\x01" + bytes(57)  # without sections: the whole file is looked through
        path = places[release] = os.path.join(folder, place, "libnccl.so.2")
        os.makedirs(os.path.dirname(path))
        with open(path, "wb") as f:
            f.write(head + f"NCCL version {release}+cuda13.0\0".encode())
    python = host.write("bin/python3", f"#!/bin/sh\necho {folder}/site\n")
    os.chmod(python, 0o755)
    result = host.doctor("python3", PATH=f"{folder}/bin:/usr/bin:/bin", LD_LIBRARY_PATH=os.path.join(folder, "ld"))
    found = [(n["version"], n["path"]) for n in result["nccl"][:2]]
    check("both, Python's first", found, list(places.items()))
    texts = [s["text"] for s in step(result, "nccl")]
    check_in("the first's variable", "LD_PRELOAD brings the plugin in", texts[0])
    check_in("the second's", "NCCL_ENV_PLUGIN brings the plugin in", texts[1])
    check_in("said", "need different variables", texts[-1])


def test_text(folder):
    done = gv100("doctor", "--nccl", "2.28.9", env=Host(folder).environment(NCCL_P2P_LEVEL="SYS"))
    check("status", done.returncode, 1)
    check_in("last line", "not ready: 1 thing is in the way", done.stdout)
    check("nothing on stderr", done.stderr, "")
    check("width", max(map(len, done.stdout.splitlines())) <= 107, True)


TREE = sysfs()
MACHINE = os.path.join(os.environ["GV_SOURCE_DIR"], "testbench/machines/4028/machine.yaml")
for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        with tempfile.TemporaryDirectory() as work:
            test(os.path.realpath(work))
finish()
