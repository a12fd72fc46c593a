"""Fleets of virtual machines with faults: kinds, outliers, the merged profile, the page."""

import os
import re
import shutil
import xml.etree.ElementTree as ElementTree

from fleet import FOLDER, copy, measure_all, read
from gv_cli import check, check_in, finish, gv100, gv100_json


def without_gpu_10(text):
    text = re.sub(r'  - \{bus_id: "0000:b1:00.0".*?\}\n', "", text, flags=re.S)
    return re.sub(r'    - \{gpus: "10".*?\}\n', "", text)


HOSTS = {
    "node1": (1,),
    "node2": (2,),
    "node3": (3, "4028", "gpus: [{gpu: 2, link_width: 4}]"),
    "node4": (4, "4028", "gpus: [{gpu: 8, throttle: 0.6}]"),
    "node5": (5, "4028", "no_enable: [[0, 5]]"),
    "node6": (6, "4028", "corrupt: [[1, 6]]"),
    "node7": (7, "4028", "", without_gpu_10),
    "ws1": (11, "2x3090"),
    "ws2": (12, "2x3090"),
}
PROFILES = measure_all(HOSTS)

# host, figure, where, value, elsewhere: all that is named, but for what goes with one of these
OFF = [
    ("node3", "link_width", (2,), 4, 16),
    ("node3", "to_device_gbs", (2,), 3.3, 12.3),
    ("node3", "to_host_gbs", (2,), 3.3, 13.1),
    ("node4", "copy_gbs", (8,), 606, 1010),
    ("node4", "read_gbs", (8,), 606, 1010),
    ("node4", "write_gbs", (8,), 606, 1010),
    ("node4", "triad_gbs", (8,), 606, 1010),
    ("node5", "p2p", (0, 5), "one-way", "verified"),
    ("node6", "p2p", (1, 6), "corrupt", "verified"),
    ("node7", None, (), None, None),
]


def near(got, wanted):
    if isinstance(wanted, float):
        return abs(got / wanted - 1) < 0.03
    return abs(got / wanted - 1) < 0.03 if isinstance(wanted, int) and wanted > 100 else got == wanted


def folder(name, *hosts):
    path = os.path.join(FOLDER.name, name)
    os.makedirs(path, exist_ok=True)
    for host in hosts:
        shutil.copy(PROFILES[host], path)
    return path


def place_of(outlier):
    return tuple(outlier[k] for k in ("gpu", "from", "to") if k in outlier)


def test_named(answer):
    named = [o for o in answer["outliers"] if o["goes_with"] is None]
    check("what is named", [(o["host"], o["figure"], place_of(o)) for o in named], [row[:3] for row in OFF])
    for o, (host, figure, _, value, elsewhere) in zip(named, OFF):
        if figure:
            check(f"{host} {figure}: {o['value']}", near(o["value"], value), True)
            check(f"{host} {figure} elsewhere: {o['elsewhere']}", near(o["elsewhere"], elsewhere), True)
    check_in("the missing GPU", "GPU at 0000:b1:00.0", named[-1]["where"])
    for o in answer["outliers"]:
        if o["goes_with"] is not None:
            cause = answer["outliers"][o["goes_with"]]
            check(f"{o['where']} goes with one of its host", cause["host"], o["host"])
    with_link = [o for o in answer["outliers"] if o["goes_with"] == 0]
    check("pairs of the slow link", sum(o["figure"] == "p2p_write_gbs" for o in with_link), 18)


def test_kinds(answer):
    kinds = {k["name"]: k for k in answer["kinds"]}
    got = {name: k["hosts"] for name, k in kinds.items()}
    check("kinds", got, {
        "11x-tesla-v100-pcie-32gb": [f"node{i}" for i in range(1, 7)],
        "10x-tesla-v100-pcie-32gb": ["node7"],
        "2x-nvidia-geforce-rtx-3090": ["ws1", "ws2"],
    })  # fmt: skip
    check_in("why node7 is another", "10 GPUs, not 11", kinds["10x-tesla-v100-pcie-32gb"]["differs"])
    check("of two nobody is named", kinds["2x-nvidia-geforce-rtx-3090"]["outliers_can_be_told"], False)


def test_merged(answer, out):
    path = os.path.join(out, "11x-tesla-v100-pcie-32gb.yaml")
    check("written", answer["kinds"][0]["profile"], path)
    merged = gv100_json("show", "--profile", path)
    check("whose", merged["provenance"]["source"], "median over 6 hosts, ranges across them: node1, node2, node3, node4, node5, node6")
    pairs = {(p["from"][0], p["to"][0]): p for p in merged["paths"]}
    for ends, note in (((0, 5), "not so on 1 of 6 hosts"), ((2, 3), "")):
        check(f"{ends} is verified where all but the one that is off have it", pairs[ends]["p2p"], "verified")
        check(f"{ends} note", pairs[ends].get("note") or "", note)
    check("refused by all", pairs[0, 10]["p2p"], "refused")
    check("the usual link", {g["link_width"] for g in merged["gpus"]}, {16})
    (memory,) = [m for m in merged["memory"] if m["gpus"] == [8]]
    check("a median without the slow one", (memory["copy_gbs"]["count"], memory["copy_gbs"]["min"] > 990), (5, True))
    uuids = [g.get("uuid") for g in merged["gpus"]]
    check("nobody's cards", [u for u in uuids if u], [])
    for gpus in ("0-4", "0-5", "7,9"):
        check_in(f"{gpus} can be explained", "GPUs " + gpus, gv100("explain", "--profile", path, "--gpus", gpus).stdout)
    again = gv100("fleet", PROFILES["node1"], PROFILES["node2"], path)
    check("its own work is no host", (again.returncode, "2 hosts of 1 kind" in again.stdout), (0, True))
    check_in("and that is said", "written by fleet", again.stdout)


def test_page(answer, page):
    text = read(page).replace("<!DOCTYPE html>\n", "").replace(' xmlns="http://www.w3.org/2000/svg"', "")
    tree = ElementTree.fromstring(text)
    check("no script, nothing from outside", [w for w in ("<script", "http:", "https:", "url(h") if w in text], [])
    cells = [e for e in tree.iter("td") if "data-value" in e.attrib]
    named = [o for o in answer["outliers"] if o["goes_with"] is None and o["figure"]]
    check("the page names them", [e.text for e in cells], [o["text"] for o in named])
    dots = [e for e in tree.iter("circle") if e.get("data-figure") == "copy_gbs" and e.get("data-host") == "node4"]
    check("a dot", [round(float(e.get("data-deviation")), 2) for e in dots], [-0.4])
    check("a mark of its own", [e.get("class") for e in dots], ["dot off"])


def test_measured():
    where, out, page = folder("all", *HOSTS), os.path.join(FOLDER.name, "kinds"), os.path.join(FOLDER.name, "page.html")
    done = gv100("fleet", where, "-o", out, "--html", page)
    check("something is off: status", (done.returncode, done.stderr), (1, ""))
    check_in("as text", "GPU 2 (0000:1c:00.0): PCIe link is x4, x16 elsewhere", done.stdout)
    check_in("and the sum", "9 hosts of 3 kinds, 5 off", done.stdout)
    answer = gv100_json("fleet", where, "-o", out)
    test_named(answer)
    test_kinds(answer)
    test_merged(answer, out)
    test_page(answer, page)


def test_unread():
    where = folder("broken", "node1", "node2")
    copy("broken/node9.yaml", "gv100_profile: 1\nname: node9\nmachine: {\n")
    done = gv100("fleet", where)
    check("a profile that cannot be read: status", done.returncode, 3)
    check_in("is named with its line", "node9.yaml:4:", done.stderr)
    check_in("and the rest goes on", "2 hosts of 1 kind, 0 off, 1 not read", done.stdout)
    answer = gv100("fleet", where, "--json")
    check_in("in JSON too", '"unread": [', answer.stdout)


test_measured()
test_unread()
finish()
