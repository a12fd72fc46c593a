"""`gv100 check` compares what the host was: IOMMU and ACS on a pair's way count, the rest is noted."""

import os
import struct
import tempfile

from gv_cli import check, check_in, finish, gv100, gv100_json, sysfs

FOLDER = tempfile.TemporaryDirectory(prefix="gv-check-host-")
ACS_ON, ACS_OFF = 0x1D, 0x01


def config_space(redirects):
    """4096 bytes with one extended capability: 0x000d, its control word at +6."""
    data = bytearray(4096)
    struct.pack_into("<I", data, 0x100, 0x000D | 1 << 16)
    struct.pack_into("<HH", data, 0x104, 0x5F, redirects)
    return bytes(data)


def bridges(root):
    devices = os.path.join(root, "bus/pci/devices")
    return sorted(d for d in os.listdir(devices) if is_bridge(os.path.join(devices, d)))


def is_bridge(path):
    with open(os.path.join(path, "class")) as f:
        return f.read().startswith("0x0604")


def gpus(root):
    devices = os.path.join(root, "bus/pci/devices")
    return sorted(d for d in os.listdir(devices) if not is_bridge(os.path.join(devices, d)))


def set_host(root, iommu, redirecting):
    """The machine's files as a root would read them."""
    devices = os.path.join(root, "bus/pci/devices")
    for bridge in bridges(root):
        with open(os.path.join(devices, bridge, "config"), "wb") as out:
            out.write(config_space(ACS_ON if bridge in redirecting else ACS_OFF))
    for gpu in gpus(root):
        group = os.path.join(devices, gpu, "iommu_group")
        os.makedirs(group, exist_ok=True)
        with open(os.path.join(group, "type"), "w") as out:
            out.write(iommu + "\n")


def profile(name, text):
    path = os.path.join(FOLDER.name, name + ".yaml")
    with open(path, "w") as out:
        out.write(text)
    return path


def fields(path, root):
    answer = gv100_json("check", "--profile", path, "--machine", root)
    return answer, {f["field"]: (f["profile"], f["machine"], f["verdict"]) for f in answer["fields"]}


def test_written():
    """Calibration writes them; an unknown is unknown."""
    out = os.path.join(FOLDER.name, "virtual.yaml")
    check("calibrated", gv100("calibrate", "--virtual", "4028", "--only", "p2p", "-o", out).returncode, 0)
    shown = gv100_json("show", "--profile", out)
    check("a replayed host", (shown["host"]["iommu"], shown["host"]["shm_mib"]), ("unknown", None))
    check("peers", shown["host"]["peers"], 8)
    check("ACS", {p["acs"] for p in shown["paths"]}, {"unknown"})
    with open(out) as f:
        return f.read()


def test_compared(text):
    root = sysfs()
    ours = profile("measured", text.replace("acs: unknown", "acs: off").replace("iommu: unknown", "iommu: identity"))
    set_host(root, "identity", ())
    answer, found = fields(ours, root)
    check("as measured", (answer["differences"], found["IOMMU"]), (0, ("identity", "identity", "same")))
    check("as measured: ACS", found["ACS between GPU 0 and 5"], ("off", "off", "same"))
    set_host(root, "DMA-FQ", ())
    answer, found = fields(ours, root)
    check("the IOMMU translates", (answer["differences"], found["IOMMU"][2]), (1, "differs"))
    first = bridges(root)[0]
    set_host(root, "identity", (first,))
    answer, found = fields(ours, root)
    changed = {f: v for f, v in found.items() if f.startswith("ACS") and v[2] == "differs"}
    check("ACS was turned on", answer["differences"] == len(changed) > 0, True)
    check("where", {v[1] for v in changed.values()}, {first})
    done = gv100("check", "--profile", ours, "--machine", root)
    check("status", done.returncode, 1)
    check_in("words", first, done.stdout)
    answer, found = fields(profile("unknown", text), root)
    check("an unknown is not compared", (answer["differences"], found["IOMMU"][2]), (0, "not known"))
    answer, found = fields("4028", root)
    check("a profile without them", (answer["differences"], [f for f in found if f.startswith("ACS")]), (0, []))


test_compared(test_written())
finish()
