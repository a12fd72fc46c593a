"""What a user sets wins: the plugin steps back, and says so where it matters."""
import os
import tempfile

from gvhost import *

FOLDER = tempfile.mkdtemp()


def write(name, text):
    path = os.path.join(FOLDER, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def detected(edit=lambda text: text):
    """The machine as a topology file, as NCCL_TOPO_DUMP_FILE would give it."""
    cpu = ('<cpu numaid="{}" affinity="{}" arch="x86_64" vendor="GenuineIntel" familyid="6" '
           'modelid="85">')
    pci = '<pci busid="0000:{}:00.0" class="{}" link_speed="8.0 GT/s PCIe" link_width="16">'

    def gpu(bus, dev):
        return pci.format(bus, "0x030200") + f'<gpu dev="{dev}" sm="70" gdr="1"></gpu></pci>'

    first, second = ["1a", "1b", "1c", "1d", "1e"], ["3d", "3e", "3f", "40", "41"]
    text = '<system version="1">' + cpu.format(0, "00000000,ffffffff")
    text += pci.format("17", "0x060400") + "".join(gpu(b, i) for i, b in enumerate(first)) + "</pci>"
    text += pci.format("3a", "0x060400") + "".join(gpu(b, i + 5) for i, b in enumerate(second))
    text += "</pci></cpu>" + cpu.format(1, "ffffffff,00000000") + gpu("b1", 10) + "</cpu></system>"
    return edit(text)


USER_TOPOLOGY = write("user.xml", detected())
CUT_TOPOLOGY = write("cut.xml", detected(lambda text: text[:len(text) // 2]))
GRAPH = write("graph.xml", '<graphs version="1"><graph id="0" pattern="4" crossnic="0" nchannels="1" '
              'speedintra="10" speedinter="10" latencyinter="0" typeintra="PHB" typeinter="PIX" '
              'samechannels="1"><channel>' + "".join(f'<gpu dev="{i:#x}"/>' for i in range(6)) +
              "</channel></graph></graphs>")
CONF_LEVEL = write("level.conf", "# of this user\nNCCL_P2P_LEVEL=SYS\n")
CONF_NOTHING = write("nothing.conf", "# nothing\n")

# environment, transports of ring 0-5 ('?': any), file handed over, algorithm, protocol
SETTINGS = [
    ({}, "PPPPPP", True, "RING", "SIMPLE"),
    ({"GV100_DISABLE": "1"}, "PPPPSS", False, "RING", "SIMPLE"),
    ({"NCCL_P2P_LEVEL": "PHB"}, "PPPPPP", False, "RING", "SIMPLE"),
    ({"NCCL_P2P_LEVEL": "PIX"}, "PPPPSS", False, "RING", "SIMPLE"),
    ({"NCCL_P2P_LEVEL": "LOC"}, "SSSSSS", False, "RING", "SIMPLE"),
    ({"NCCL_P2P_DISABLE": "1"}, "SSSSSS", False, "RING", "SIMPLE"),
    ({"NCCL_ALGO": "Tree"}, "PPPPPP", True, "TREE", "SIMPLE"),
    ({"NCCL_PROTO": "LL"}, "PPPPPP", True, None, "LL"),
    ({"NCCL_TOPO_FILE": USER_TOPOLOGY}, "PPPPPP", True, "RING", "SIMPLE"),
    ({"NCCL_GRAPH_FILE": GRAPH}, "PPPPSS", False, "RING", "SIMPLE"),
    ({"NCCL_CONF_FILE": CONF_LEVEL}, "PPPPPP", False, "RING", "SIMPLE"),
    ({"NCCL_CONF_FILE": CONF_NOTHING}, "PPPPPP", True, "RING", "SIMPLE"),
    ({"NCCL_NET": "Socket"}, "PPPPPP", True, "RING", "SIMPLE"),
    ({"NCCL_NET": "IB"}, None, None, None, None),  # NCCL's own failure, with the plugin or without
    ({"NCCL_TUNER_PLUGIN": RECORDER, "GVREC_CELLS": "0,0,0"}, "PPPPPP", True, "TREE", "LL"),
    ({"NCCL_TUNER_PLUGIN": "none"}, "PPPPPP", True, "RING", "SIMPLE"),
    ({"NCCL_SHM_DISABLE": "1"}, "PPPPNN", False, None, None),  # costs over a network are not modelled
    ({"NCCL_TOPO_FILE": CUT_TOPOLOGY}, None, None, None, None),
    # torchrun proves one node, so no network is needed and the hook may take its place
    ({"NCCL_NET_PLUGIN": "none"}, "PPPPPP", True, "RING", "SIMPLE"),
]


def run(release, env, *args):
    return host("--release", release, "--comm", "0-5", *args, env=env)[0]


for release in ("2.28.9", "2.32.3", "2.23.4", "2.27.7"):
    for env, letters, file, algorithm, protocol in SETTINGS:
        if release < "2.24" and env.get("NCCL_TUNER_PLUGIN") == "none":
            continue
        for mode in ("threads", "processes"):
            comm = run(release, env, "--mode", mode)
            plain = run(release, env, "--mode", mode, "--no-plugin")
            where = f"{release} {mode} {env}"
            check(f"{where}: error", comm["error"], plain["error"])
            if letters is None:
                continue
            check(f"{where}: transports", transports(comm), letters)
            check(f"{where}: topology file", comm["topology_file"], file)
            if algorithm:
                check(f"{where}: algorithm", comm["algorithm"], algorithm)
            if protocol:
                check(f"{where}: protocol", comm["protocol"], protocol)

# Counted, the early hook would be closed after the first rank: it is not taken, and nobody waits.
for release in ("2.28.9", "2.32.3"):
    comm = run(release, {"NCCL_NET_PLUGIN_REF_COUNT": "1"})
    check(f"{release} REF_COUNT: transports", (transports(comm), comm["topology_file"], comm["error"]),
          ("PPPPSS", False, None))
    check(f"{release} REF_COUNT: said", len([l for l in comm["log"] if "the net slot is taken" in l]) > 0, True)

done()
