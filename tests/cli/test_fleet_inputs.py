"""What `gv100 fleet` reads and how it tells hosts apart; small profiles written here. A row: files or a
stream in, exit status, hosts and words out."""

import json
import os
import subprocess
import tempfile

from gv_cli import BIN, check, check_in, environment, finish, gv100, gv100_json

FOLDER = tempfile.TemporaryDirectory(prefix="gv-fleet-")


def profile(name, card, copy=1000.0, date="2026-11-30", p2p="verified", groups="", power=250):
    """A host with two GPUs; `card` makes its UUIDs."""
    gpus = "".join(
        f"    - {{index: {i}, model: X1, pci_vendor: 0x10de, pci_device: 0x1db6, bus_id: '0000:{i}a:00.0', "
        f"uuid: GPU-{card}{i}, memory_mib: 1000, numa_node: 0, island: A, link_width: 16, power_limit_w: {power}}}\n"
        for i in range(2)
    )
    return (
        f"gv100_profile: 1\nname: {name}\nmachine:\n  match: uuid\n  gpus:\n{gpus}"
        f'provenance: {{kind: cuda, date: "{date}", driver: "580.1", tool: gv100 0.1.0}}\n'
        f"memory:\n  - {{gpus: 0-1, copy_gbs: {copy}}}\n"
        f"paths:\n  - {{from: 0, to: 1, both_directions: true, nccl_class: PIX, p2p: {p2p}}}\n"
        f"{groups}complete: true\n"
    )


def fleet(files, *args, stdin=None):
    """Runs it over a folder with these files, or over a stream."""
    with tempfile.TemporaryDirectory(dir=FOLDER.name) as folder:
        for name, text in files.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run(
            [os.path.join(BIN, "gv100"), "fleet", "--json", *args, "-" if stdin is not None else folder],
            env=environment(), input=stdin or "", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    answer = json.loads(done.stdout) if done.stdout else {"kinds": [], "outliers": [], "passed_over": []}
    hosts = sorted(h for k in answer["kinds"] for h in k["hosts"])
    return done.returncode, hosts, answer, done.stderr


ONE, TWO, THREE = profile("a", "1"), profile("b", "2"), profile("c", "3")
# files, status, hosts, words of the passed-over list or of stderr
FILES = {
    "by host name": ({"1.yaml": ONE, "2.yaml": TWO, "3.yaml": THREE}, 0, ["a", "b", "c"], ""),
    "as Ansible fetches": ({"a/etc/gv100/host.yaml": ONE, "b/etc/gv100/host.yaml": TWO}, 0, ["a", "b"], ""),
    "others' files": ({"1.yaml": ONE, "notes.txt": "x", ".hidden.yaml": "x"}, 0, ["a"], ""),
    "one name, other cards": ({"n1.yaml": ONE, "n2.yaml": profile("a", "2")}, 0, ["n1", "n2"], ""),
    "the same bytes": ({"1.yaml": ONE, "2.yaml": ONE}, 0, ["a"], "the same profile as"),
    "measured again": ({"1.yaml": profile("a", "1", date="2026-01-01"), "2.yaml": ONE}, 0, ["a"], "older than"),
    "renamed, measured again": ({"1.yaml": profile("z", "1", date="2026-01-01"), "2.yaml": ONE}, 0, ["a"], "older than"),
    "twice on one day": ({"1.yaml": ONE, "2.yaml": profile("a", "1", copy=900.0), "3.yaml": TWO}, 3, ["b"], "cannot be told"),
    "none at all": ({"notes.txt": "x"}, 3, [], "gv100 calibrate"),
    "an empty file": ({"1.yaml": ONE, "2.yaml": ""}, 3, ["a"], "2.yaml"),
    "cut": ({"1.yaml": ONE, "2.yaml": TWO[:-20]}, 3, ["a"], "2.yaml:"),
    "only broken ones": ({"1.yaml": "x: 1\n"}, 3, [], "1.yaml:1"),
}


def labelled(*texts, label):
    """Lines in turn, as a launcher mixes them."""
    rows = [[label(i) + line for line in t.splitlines()] for i, t in enumerate(texts)]
    return "".join(r[k] + "\n" for k in range(max(map(len, rows))) for r in rows if k < len(r))


def pieces(*texts, size):
    """As Open MPI 4.1.4 tags what it got in one piece: the tag at each line's begin and, where a piece
    ends inside a line, again in the middle of it."""
    out, at = "", [0] * len(texts)
    while any(at[i] < len(t) for i, t in enumerate(texts)):
        for i, t in enumerate(texts):
            part = t[at[i] : at[i] + size]
            at[i] += size
            out += "".join(f"[1,{i}]<stdout>:{line}" for line in part.splitlines(True))
    return out


STREAMS = {
    "one after another": (ONE + TWO + THREE, 0, ["a", "b", "c"], ""),
    "with a comment before": ("# collected\n\n" + ONE + "---\n" + TWO, 0, ["a", "b"], ""),
    "srun --label": (labelled(ONE, TWO, THREE, label=lambda i: f" {i}: "), 0, ["a", "b", "c"], ""),
    "mpirun --tag-output": (labelled(ONE, TWO, label=lambda i: f"[1,{i}]<stdout>:"), 0, ["a", "b"], ""),
    "mpirun, lines in pieces": (pieces(ONE, TWO, THREE, size=100), 0, ["a", "b", "c"], ""),
    "mpirun, one rank's is cut": (pieces(ONE, TWO[:300], size=70), 3, ["a"], "standard input, [1,1]<stdout>:"),
    "pdsh": (labelled(ONE, TWO, label=lambda i: f"node{i}: "), 0, ["a", "b"], ""),
    "Windows line ends": (ONE.replace("\n", "\r\n") + TWO, 0, ["a", "b"], ""),
    "Ansible": (f"h1 | CHANGED | rc=0 >>\n{ONE}h2 | CHANGED | rc=0 >>\n{TWO}", 0, ["a", "b"], ""),
    "Ansible, a host fails": (
        f"h1 | CHANGED | rc=0 >>\n{ONE}\n[ERROR]: Task failed\nOrigin: <adhoc 'command' task>\n\n"
        "h2 | FAILED | rc=1 >>\ncat: /etc/gv100/host.yaml: No such file\n", 3, ["a"],
        "h2: no profile, but 'cat: /etc/gv100/host.yaml: No such file'",
    ),
    "mixed without labels": (labelled(ONE, TWO, label=lambda i: ""), 3, [], "srun --label"),
    "a line that is wrong": (ONE + TWO.replace("island: A", "iland: A", 1), 3, ["a"], "standard input:19:"),
    "cut": (ONE + TWO[:200], 3, ["a"], "standard input:"),
    "nothing": ("", 3, [], "empty"),
    "something else": ("hello\n", 3, [], "no profile, but 'hello'"),
}  # fmt: skip


def test_inputs():
    for name, (files, status, hosts, words) in FILES.items():
        got, names, answer, stderr = fleet(files)
        check(name, (got, names), (status, hosts))
        check_in(f"{name}: words", words, stderr + "\n".join(answer["passed_over"]))
    for name, (text, status, hosts, words) in STREAMS.items():
        got, names, _, stderr = fleet({}, stdin=text)
        check(f"stream, {name}", (got, names), (status, hosts))
        check_in(f"stream, {name}: words", words, stderr)


# Profiles of three or more hosts; status; what is named: host and figure
OUTLIERS = {
    "all alike": ([{}] * 3, 0, []),
    "within the tolerated loss": ([{}, {}, {"copy": 960.0}], 0, []),
    "beyond it": ([{}, {}, {"copy": 940.0}], 1, [("h2", "copy_gbs", 0), ("h2", "copy_gbs", 1)]),
    "faster is off as well": ([{}, {}, {"copy": 1100.0}], 1, [("h2", "copy_gbs", 0), ("h2", "copy_gbs", 1)]),
    "of two nobody is": ([{}, {"copy": 500.0}], 0, []),
    "all different": ([{}, {"copy": 800.0}, {"copy": 600.0}], 0, []),
    "wide spread, one far": (
        [{"copy": c} for c in (900.0, 950.0, 1000.0, 1050.0, 1100.0, 100.0)], 1,
        [("h5", "copy_gbs", 0), ("h5", "copy_gbs", 1)],
    ),
    "power limit": ([{}, {}, {"power": 150}], 1, [("h2", "power_limit_w", 0), ("h2", "power_limit_w", 1)]),
    "no usual limit": ([{"power": 100}, {"power": 200}, {"power": 300}], 0, []),
    "a refused pair": ([{}, {}, {"p2p": "refused"}], 1, [("h2", "p2p", 0)]),
    "P2P, two against two": ([{}, {}, {"p2p": "corrupt"}, {"p2p": "corrupt"}], 0, []),
}  # fmt: skip


def test_outliers():
    for name, (hosts, status, wanted) in OUTLIERS.items():
        files = {f"h{i}.yaml": profile(f"h{i}", str(i), **how) for i, how in enumerate(hosts)}
        got, _, answer, _ = fleet(files)
        named = [(o["host"], o["figure"], o.get("gpu", o.get("from"))) for o in answer["outliers"] if o["goes_with"] is None]
        check(name, (got, named), (status, wanted))


# P2P on each host -> in the merged profile
STATES = [
    (["verified"] * 3, "verified"),
    (["verified", "verified", "corrupt"], "verified"),
    (["verified", "corrupt"], "unverified"),
    (["verified", "unverified", "corrupt"], "unverified"),
    (["verified", "verified", "corrupt", "corrupt"], "unverified"),
    (["corrupt", "corrupt", "verified"], "corrupt"),
    (["refused"] * 2, "refused"),
]


def merged(hosts, **how):
    out = tempfile.mkdtemp(dir=FOLDER.name)
    files = {f"h{i}.yaml": profile(f"h{i}", str(i), **h) for i, h in enumerate(hosts)}
    _, _, answer, _ = fleet(files, "-o", out, **how)
    return gv100_json("show", "--profile", answer["kinds"][0]["profile"]), answer["kinds"][0]


def test_states():
    for states, wanted in STATES:
        profile_of_kind, _ = merged([{"p2p": s} for s in states])
        check(f"{states}", profile_of_kind["paths"][0]["p2p"], wanted)


def group(default, p2p=None):
    rows = f"      - {{edit: none, runs: [{{name: first, busbw_gbs: {default}}}]}}\n"
    if p2p:
        rows += f"      - {{edit: bridge, runs: [{{name: first, busbw_gbs: {p2p}}}]}}\n"
    return f"groups:\n  - gpus: 0-1\n    op: AllReduce\n    bytes: 1G\n    variants:\n{rows}"


def test_groups():
    hosts = [
        {"groups": group([6.9, 7.0, 7.1], [8.0, 8.1, 8.2])},
        {"groups": group([6.8, 6.9, 7.0], [7.9, 8.0, 8.1])},
        {"groups": group([7.0, 7.1, 7.2, 7.3], [8.0, 8.2, 8.4])},
    ]
    m, kind = merged(hosts)
    variants = {v["edit"]: v["runs"][0]["busbw_gbs"] for v in m["groups"][0]["variants"]}
    check("the median of each rank", variants, {"none": [6.9, 7.0, 7.1], "bridge": [8.0, 8.1, 8.2]})
    check("nothing is left out", kind["left_out"], [])
    m, kind = merged([
        {"groups": group([6.9, 7.0, 7.1], [7.2, 7.3, 7.4])},
        {"groups": group([7.0, 7.1, 7.2], [7.4, 7.5, 7.6])},
        {"groups": group([7.1, 7.2, 7.3], [7.05, 7.15, 7.25])},
    ])  # fmt: skip
    edits = [v["edit"] for v in m["groups"][0]["variants"]]
    lost = [line for line in kind["left_out"] if "loses on h2" in line]
    check("where a host loses by it, the kind has no word", (edits, len(lost)), (["none"], 1))
    m, kind = merged([*hosts[:2], {"groups": group([7.0, 7.0, 7.0])}])
    check("not measured by all", [v["edit"] for v in m["groups"][0]["variants"]], ["none"])
    check_in("and said", "not all of its hosts measured", "\n".join(kind["left_out"]))


def test_usage():
    check("nothing named", gv100("fleet").returncode, 2)
    done = gv100("fleet", "/nowhere")
    check("no such folder", (done.returncode, "/nowhere" in done.stderr), (3, True))


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        test()
finish()
