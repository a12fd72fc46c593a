"""The HTML report: well-formed, nothing from outside, every figure of a picture and of a table equal to the JSON;
in Chromium, where there is one, without an error and without overflow at 360 and 1600 pixels."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

from gv_cli import check, check_in, environment, finish, gv100, gv100_json

FOLDER = tempfile.TemporaryDirectory(prefix="gv-report-")
TRUSTED = environment(GV100_ASSUME_VERIFIED="1", TMPDIR=FOLDER.name)
SVG = "{http://www.w3.org/2000/svg}"


def path(name):
    return os.path.join(FOLDER.name, name)


def done(what, *args, **how):
    result = gv100(*args, env=TRUSTED, **how)
    check(f"{what}: status and stderr", (result.returncode, result.stderr), (0, ""))
    return result.stdout


def page(name):
    """The page as a tree; that it parses is the proof that it is well-formed."""
    with open(path(name), encoding="utf-8") as file:
        text = file.read()
    check(f"{name}: doctype", text.split("\n", 1)[0], "<!DOCTYPE html>")
    return text, ElementTree.fromstring(text.split("\n", 1)[1])


class Balanced(HTMLParser):
    """HTML's own view of it: every element that is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.bad = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        if tag not in ("meta", "br", "col"):
            self.bad.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append(tag)


def alone(name, text, root):
    """One file: nothing in it makes a browser fetch or run anything."""
    parser = Balanced()
    parser.feed(text)
    check(f"{name}: balanced", (parser.bad, parser.open), ([], []))
    tags = {e.tag.replace(SVG, "") for e in root.iter()}
    check(f"{name}: elements that load", tags & {"link", "img", "iframe", "object", "image", "use", "base"}, set())
    scripts = [e.get("type") for e in root.iter("script")]
    check(f"{name}: scripts are data", set(scripts) <= {"application/json"}, True)
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    check(f"{name}: ids are unique", len(ids), len(set(ids)))
    for e in root.iter():
        for key, value in e.attrib.items():
            check(f"{name}: handler {key}", key.startswith("on"), False)
            if key in ("href", "src", "{http://www.w3.org/1999/xlink}href"):
                check(f"{name}: {value} is inside", value[0] == "#" and value[1:] in ids, True)
        for ref in (e.get("aria-labelledby") or "").split():
            check(f"{name}: {ref} is there", ref in ids, True)
    style = "".join(e.text for e in root.iter("style"))
    check(f"{name}: style loads", [u for u in re.findall(r"url\(([^)]*)\)|(@import)", style) if u != ("#hatch", "")], [])


def pictures(name, root):
    """Each picture has a title and a description; each table a caption and a region of its own."""
    for svg in root.iter(f"{SVG}svg"):
        if svg.get("aria-hidden"):
            continue
        title, desc = svg.find(f"{SVG}title"), svg.find(f"{SVG}desc")
        check(f"{name}: title of {svg.get('id')}", bool(title is not None and title.text), True)
        check(f"{name}: description of {svg.get('id')}", bool(desc is not None and desc.text), True)
    for region in root.iter("div"):
        if region.get("class") == "scroll":
            check(f"{name}: region", (region.get("tabindex"), region.get("role")), ("0", "region"))
            check(f"{name}: caption", bool(region.find("table/caption").text), True)


def number(e, key):
    text = e.get(key)
    return None if text is None else float(text)


def shown(what, e, value):
    """The rounded figure that a person reads is the one of the attribute."""
    text = "".join((e.text or "").split())
    if value is None:
        check(f"{what}: text", text, "-")
    else:
        digits = 2 if abs(value) < 100 else 1 if abs(value) < 1000 else 0
        check(f"{what}: text", text, f"{value:.{digits}f}")


def key_of(e):
    return e.get("data-variant"), e.get("data-operation"), int(e.get("data-size")), e.get("data-in-place") == "true"


def row_key(r):
    return r["variant"], r["operation"], r["size"], r["in_place"]


def busbw(name, root, run):
    rows = {row_key(r): r for r in run["comparisons"]}
    sides = {row_key(r): r["variant_result"] for r in run["comparisons"]}
    sides.update({(r["base"], *row_key(r)[1:]): r["base_result"] for r in run["comparisons"]})
    (part,) = [s for s in root.iter("section") if s.get("id") == "busbw"]
    points = [e for e in part.iter(f"{SVG}path") if e.get("data-bus-bw")]
    check(f"{name}: points", sorted(map(key_of, points)), sorted(k for k, s in sides.items() if s["count"]))
    for e in points:
        side = sides[key_of(e)]
        got = [number(e, f"data-{k}") for k in ("bus-bw", "low", "high")]
        check(f"{name}: point {key_of(e)}", got, [side["bus_bw"], side["bus_bw_low"], side["bus_bw_high"]])
    seen = []
    for tr in part.iter("tr"):
        if not tr.get("data-variant"):
            continue
        what, row = f"{name}: row {key_of(tr)}", rows[key_of(tr)]
        seen.append(key_of(tr))
        for cell in tr.iter("td"):
            if cell.get("data-side"):
                side = row[f"{cell.get('data-side')}_result"]
                wanted = side["bus_bw"] if side["count"] else None
                check(f"{what}, {cell.get('data-side')}", number(cell, "data-bus-bw"), wanted)
                shown(what, cell, wanted)
        (gain,) = [c for c in tr.iter("td") if c.get("data-gain")] or [None]
        if row["gain"] is None:
            check(f"{what}: no gain", gain, None)
        else:
            got = [number(gain, f"data-gain{k}") for k in ("", "-low", "-high")]
            check(f"{what}: gain", got, [row["gain"], *row["gain_interval"]])
            check(f"{what}: gain's text", gain.text, f"{100 * row['gain']:+.1f} %")
        check(f"{what}: verdict", list(tr)[-1].text, row["verdict"])
    check(f"{name}: rows", sorted(seen), sorted(rows))


def rings(name, root, run):
    found = {e.get("data-ring"): e for e in root.iter("div") if e.get("data-ring")}
    check(f"{name}: rings", sorted(found), sorted(v["name"] for v in run["variants"]))
    for v in run["variants"]:
        wanted = [(e["from"], e["to"], e["transport"], e["gbs"], i == v["ring"]["slowest"])
                  for i, e in enumerate(v["ring"]["edges"])]
        for tag in (f"{SVG}g", "tr"):
            got = [(int(e.get("data-from")), int(e.get("data-to")), e.get("data-transport"), number(e, "data-gbs"),
                    e.get("data-slowest") == "true") for e in found[v["name"]].iter(tag) if e.get("data-from")]
            check(f"{name}: {v['name']}, {tag}", sorted(got, key=str), sorted(wanted, key=str))
        labels = [t.text for t in found[v["name"]].iter(f"{SVG}text") if "label" in t.get("class")]
        texts = [t.split("/")[0] + ("" if g is None else f" {g:.2f}") + (" slowest" if s else "")
                 for _, _, t, g, s in wanted]
        check(f"{name}: {v['name']}, labels", sorted(labels), sorted(texts))


def decisions(name, root, run):
    for v in run["variants"]:
        (card,) = [e for e in root.iter("article") if e.get("data-variant") == v["name"]]
        check_in(f"{name}: the plugin's word on {v['name']}", v["decided"], "".join(card.itertext()))


def policy(name, root, explained):
    """`explained`: what gv100 explain --json says of these GPUs."""
    (card,) = [e for e in root.iter("article") if e.get("data-gpus") == explained["gpu_list"]]
    text = "".join(card.itertext())
    check_in(f"{name}: reason", explained["reason"], text)
    gains = [number(e, "data-gain") for e in card.iter("dd") if e.get("data-gain")]
    check(f"{name}: gain", gains, [g for g in [explained["gain"]] if g is not None])
    rows = [number(e, "data-gain") for e in card.iter("td") if e.get("data-gain")]
    check(f"{name}: the tuner's table", rows, [r["gain"] for r in explained["rows"]])


def median(figure):
    return figure.get("median") if isinstance(figure, dict) else figure


def paths(name, root, profile):
    wanted = {}
    for p in profile["paths"]:
        for a in p["from"]:
            for b in p["to"]:
                for pair in [(a, b)] + ([(b, a)] if p["both_directions"] else []):
                    if a != b:
                        sound = p["p2p"] in ("verified", "unverified") and median(p["write_gbs"]) is not None
                        wanted[pair] = (p["p2p"], median(p["write_gbs"]) if sound else None,
                                        None if sound else median(p["host_path_gbs"]))
    for tag in (f"{SVG}g", "td"):
        got = {(int(e.get("data-from")), int(e.get("data-to"))):
               (e.get("data-p2p"), number(e, "data-write-gbs"), number(e, "data-host-path-gbs"))
               for e in root.iter(tag) if e.get("data-p2p")}
        check(f"{name}: P2P matrix, {tag}", got, wanted)
    for e in root.iter("td"):
        if e.get("data-p2p"):
            value = number(e, "data-write-gbs")
            shown(f"{name}: P2P table", e, number(e, "data-host-path-gbs") if value is None else value)


def host_links(name, root, profile):
    wanted = [(median(link["to_device_gbs"]), median(link["to_host_gbs"])) for link in profile["host_links"]]
    for tag in (f"{SVG}g", "tr"):
        got = []
        for e in root.iter(tag):
            if e.get("data-link"):
                values = {k: number(x, k) for x in e.iter() for k in x.attrib if k.endswith("-gbs")}
                got.append((values.get("data-to-device-gbs"), values.get("data-to-host-gbs")))
        check(f"{name}: host links, {tag}", got, wanted)


def groups(name, root, profile):
    """The policy's median of each variant, as `show` has it."""
    got = {(int(tr.get("data-group")), int(tr.get("data-variant"))): number(td, "data-busbw-gbs")
           for tr in root.iter("tr") if tr.get("data-group") for td in tr.iter("td") if td.get("data-busbw-gbs")}
    wanted = {(g, v): variant["busbw_gbs"]["median"] for g, group in enumerate(profile["groups"])
              for v, variant in enumerate(group["variants"]) if variant["busbw_gbs"]["median"] is not None}
    check(f"{name}: groups", got, wanted)


def rounded(value):
    """As printed: --json has twelve digits, a run that is kept has all."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


def witness(name, root, run):
    ours = {row_key(r)[:3]: r["bus_bw"] for r in run["results"] if not r["in_place"]}
    got = [(tr.get("data-witness"), tr.get("data-operation"), int(tr.get("data-size")),
            *[number(td, k) for td in tr.iter("td") for k in td.attrib if k.startswith("data-")])
           for tr in root.iter("tr") if tr.get("data-witness")]
    wanted = []
    for w in run["witness"]["results"]:
        own = ours[w["variant"], w["operation"], w["size"]]
        wanted.append((w["variant"], w["operation"], w["size"], *([] if own is None else [own]), w["bus_bw"]))
    check(f"{name}: witness", got, wanted)


def kept(name, root, run):
    """The run is in the file, whole, and can be read again from there."""
    (script,) = list(root.iter("script"))
    check(f"{name}: the run inside", rounded(json.loads(script.text)), rounded(run))
    with open(path("again.json"), "w", encoding="utf-8") as out:
        out.write(script.text)
    again = json.loads(done(name, "compare", path("again.json"), "--json"))
    check(f"{name}: where it was read", again.pop("loaded"), path("again.json"))
    check(f"{name}: read again", again, {k: v for k, v in run.items() if k != "loaded"})


def made_again(name, root, run):
    """The command that measures again, and what it rests on."""
    (pre,) = [e for e in root.iter("pre") if e.get("data-again")]
    check(f"{name}: the command to measure again", pre.find("code").text, run["settings"]["command"])
    text = "".join(root.itertext())
    for key, value in run["settings"]["environment"].items():
        check_in(f"{name}: {key}", f"{key}={value}", text)
    notes = [e.text for e in root.iter("p") if e.get("data-note")]
    check(f"{name}: notes", [n for n in notes if n in run["notes"]], run["notes"])


def job(name, root, run):
    """Seconds saved and the share, in sentences, bars and the table."""
    parts = [s for s in root.iter("section") if s.get("id") == "job"]
    if run["job"] is None:
        check(f"{name}: no job", parts, [])
        return
    (part,) = parts
    gains = {g["variant"]: g for g in run["job"]["gains"]}
    got = {e.get("data-job"): (number(e, "data-saved-s"), number(e, "data-share")) for e in part.iter("p") if e.get("data-job")}
    check(f"{name}: saved", got, {v: (g["saved_s"]["value"], g["share"]["value"]) for v, g in gains.items()})
    for e in part.iter("p"):
        if e.get("data-job"):
            share = gains[e.get("data-job")]["share"]
            check_in(f"{name}: share in words", f"{100 * share['value']:.2f} % of a step of {run['job']['step_s']:.6g} s "
                     f"({100 * share['low']:.2f} to {100 * share['high']:.2f} %)", "".join(e.itertext()))
    bars = {e.get("data-job-bar"): tuple(number(e, k) for k in ("data-seconds", "data-low", "data-high"))
            for e in part.iter(f"{SVG}g") if e.get("data-job-bar")}
    wanted = {v: tuple(g["variant_s"][k] for k in ("value", "low", "high")) for v, g in gains.items()}
    wanted[run["base"]] = tuple(next(iter(gains.values()))["base_s"][k] for k in ("value", "low", "high"))
    check(f"{name}: bars", bars, wanted)
    rows = [(e.get("data-job-row"), int(e.get("data-size")), [number(td, "data-calls") for td in e.iter("td")
                                                            if td.get("data-calls")]) for e in part.iter("tr")
            if e.get("data-job-row")]
    check(f"{name}: sizes of the job", rows, [(r["operation"], r["size"], [r["calls"] / run["job"]["steps"]])
                                              for r in run["job"]["sizes"]])


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# What the test page tells of itself: errors, every element that sticks out though nothing around it
# scrolls, text outside its picture and labels on labels.
PROBE = """<script>
var seen = [];
addEventListener("error", function (e) { seen.push(String(e.message || e.target.tagName)); }, true);
addEventListener("load", function () {
  var root = document.scrollingElement, out = [], clipped = [], small = 1e9;
  document.querySelectorAll("body *").forEach(function (e) {
    if (e.getBoundingClientRect().right > innerWidth + 0.5 && !e.closest(".scroll, .skip, svg") &&
        getComputedStyle(e).display !== "none") out.push(e.tagName);
  });
  document.querySelectorAll("svg[role=img]").forEach(function (s) {
    var box = s.getBoundingClientRect();
    s.querySelectorAll("text").forEach(function (t) {
      var b = t.getBoundingClientRect();
      if (b.left < box.left - 1 || b.right > box.right + 1 || b.bottom > box.bottom + 1 || b.top < box.top - 1)
        clipped.push(s.id + ": " + t.textContent);
      small = Math.min(small, b.height);
    });
    var labels = Array.from(s.querySelectorAll(".label")).map(function (t) { return t.getBoundingClientRect(); });
    labels.forEach(function (a, i) { labels.slice(i + 1).forEach(function (b) {
      if (a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom)
        clipped.push(s.id + ": labels overlap");
    }); });
  });
  parent.postMessage(JSON.stringify({errors: seen, width: root.scrollWidth, inner: innerWidth, out: out,
    clipped: clipped, small: small}), "*");
});
</script>"""
# A window has a least width of its own, a frame has not.
FRAME = """<!DOCTYPE html><title>none</title><script>
addEventListener("message", function (e) { document.title = e.data; });
</script><iframe style="border:0" width="%d" height="1000" src="probe.html"></iframe>"""


def in_chromium(name, text, width, dark):
    with open(path("probe.html"), "w", encoding="utf-8") as out:
        out.write(text.replace('<meta charset="utf-8"/>', '<meta charset="utf-8"/>' + PROBE, 1))
    with open(path("frame.html"), "w", encoding="utf-8") as out:
        out.write(FRAME % width)
    how = ["--blink-settings=preferredColorScheme=0"] if dark else []
    result = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
         f"--user-data-dir={path('chromium')}", "--window-size=1700,1000", *how, "--dump-dom",
         f"file://{path('frame.html')}"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120, check=False)
    told = re.search(r"<title>({.*?})</title>", result.stdout)
    if not told:
        check(f"{name} at {width}: Chromium showed the page", result.stdout[:200], "a title with findings")
        return
    page_says = json.loads(told.group(1).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
    what = f"{name} at {width}{', dark' if dark else ''}"
    check(f"{what}: width", page_says["inner"], width)
    check(f"{what}: errors", page_says["errors"], [])
    check(f"{what}: overflow", page_says["width"] <= page_says["inner"], True)
    check(f"{what}: sticks out", page_says["out"], [])
    check(f"{what}: clipped text and labels on labels", page_says["clipped"], [])
    check(f"{what}: smallest text is readable", page_says["small"] >= 10, True)


def looked_at(name, text):
    for width in (360, 1600) if CHROMIUM else ():
        in_chromium(name, text, width, dark=width == 360)


def compared(name, profile, gpus, *more, env=TRUSTED):
    args = ["--virtual", "4028", "--profile", profile, "--gpus", gpus, "-b", "64K", "-e", "64M", "-f", "32", *more]
    run = json.loads(done(name, "compare", *args, "--html", path(name), "--json"))
    text, root = page(name)
    alone(name, text, root)
    pictures(name, root)
    busbw(name, root, run)
    rings(name, root, run)
    decisions(name, root, run)
    kept(name, root, run)
    made_again(name, root, run)
    job(name, root, run)
    policy(name, root, gv100_json("explain", "--profile", profile, "--gpus", gpus, "--nccl", run["nccl"]["version"]))
    of_profile(name, root, profile)
    looked_at(name, text)
    return run


def of_profile(name, root, profile):
    shown_profile = gv100_json("show", "--profile", profile)
    paths(name, root, shown_profile)
    host_links(name, root, shown_profile)
    groups(name, root, shown_profile)


def a_profile_alone(name, profile):
    done(name, "show", "--profile", profile, "--html", path(name))
    text, root = page(name)
    alone(name, text, root)
    pictures(name, root)
    of_profile(name, root, profile)
    explained = gv100_json("explain", "--profile", profile)
    for one in explained if isinstance(explained, list) else [explained]:
        if any(e.get("data-gpus") == one["gpu_list"] for e in root.iter("article")):
            policy(name, root, one)
    looked_at(name, text)


def noise(run):
    """The same run with samples that differ, a variant that failed, and texts that want to be markup."""
    run = json.loads(json.dumps(run))
    for i, r in enumerate(run["results"]):
        r["times"] = [t * (1 + 0.03 * ((7 * i + 5 * k) % 11 - 5) / 5) for k, t in enumerate(r["times"])]
    run["results"][1].update(times=[], first_times=[], error='rank 1 <script>alert(1)</script> & "died"\x01')
    run["witness"] = {"program": "/opt/<all>/all_reduce_perf", "results": [
        {"variant": r["variant"], "operation": r["operation"], "size": r["size"], "alg_bw": 3.25, "bus_bw": 6.125 + i}
        for i, r in enumerate(run["results"][:2])]}
    run["host"] = "<b>&amp;</b>\"'"
    run["variants"][1]["decided"] = "</script><img src=x onerror=alert(1)>"
    return run


def hostile(run):
    """A saved run whose texts are markup, whose profile is not there, and whose samples spread."""
    name = "hostile.html"
    run = noise(run)
    run["profile"] = path("gone.yaml")
    with open(path("hostile.json"), "w", encoding="utf-8") as out:
        json.dump(run, out)
    result = gv100("compare", path("hostile.json"), "--html", path(name), "--json", env=TRUSTED)
    check(f"{name}: status", result.returncode, 0)
    check_in(f"{name}: the profile is missed", "gone.yaml", result.stderr)
    run = json.loads(result.stdout)
    text, root = page(name)
    alone(name, text, root)
    pictures(name, root)
    busbw(name, root, run)
    rings(name, root, run)
    decisions(name, root, run)
    witness(name, root, run)
    kept(name, root, run)
    check(f"{name}: no element came in", [e.tag for e in root.iter() if e.tag in ("img", "b")], [])
    looked_at(name, text)
    other = gv100("compare", path("hostile.json"), "--html", path("with.html"), "--profile", "4028", "--json", env=TRUSTED)
    check("a profile named for the report", (other.returncode, other.stderr), (0, ""))
    paths("with.html", page("with.html")[1], gv100_json("show", "--profile", "4028"))


def unwritable():
    result = gv100("show", "--profile", "4028", "--html", "/proc/nowhere/report.html")
    check("cannot be written: status", result.returncode, 3)
    check_in("cannot be written: where", "/proc/nowhere", result.stderr)


def files_together(run):
    """Two files as one page: where each comes from, and what a reader must know."""
    name = "two.html"
    with open(path("one.json"), "w", encoding="utf-8") as out:
        json.dump(run, out)
    both = json.loads(done(name, "compare", path("one.json"), path("again.json"), "--html", path(name), "--json"))
    text, root = page(name)
    alone(name, text, root)
    pictures(name, root)
    busbw(name, root, both)
    rings(name, root, both)
    check(f"{name}: notes", [e.text for e in root.iter("p") if e.get("data-note")], both["notes"])
    (pre,) = [e for e in root.iter("pre") if e.get("data-again")]
    check(f"{name}: shown again by", pre.find("code").text, f"gv100 compare {path('one.json')} {path('again.json')}")
    for origin in both["origins"]:
        check_in(f"{name}: where from", origin["command"], "".join(root.itertext()))
    looked_at(name, text)


def a_profile_that_changed(run):
    """The report says when the profile is not the one of the run."""
    with open(os.path.join(os.environ["GV100_PROFILE_DIR"], "4028.yaml"), encoding="utf-8") as file:
        changed = file.read() + "# changed\n"
    with open(path("changed.yaml"), "w", encoding="utf-8") as out:
        out.write(changed)
    done("changed", "compare", path("one.json"), "--html", path("changed.html"), "--profile", path("changed.yaml"))
    check_in("a profile that changed is said", "The profile is not the one of that run", page("changed.html")[0])
    done("unchanged", "compare", path("one.json"), "--html", path("changed.html"))
    check("a profile that did not change", "is not the one of that run" in page("changed.html")[0], False)


with open(path("job.txt"), "w", encoding="utf-8") as file:
    file.write("64M AllReduce 24\n3M AllReduce 5\n1G AllToAll 2\n8K Broadcast 7\n")
small = compared("0-5.html", "4028", "0-5", "--repeats", "3", "--sizes", path("job.txt"), "--steps", "2", "--step-time", "0.4")
files_together(small)
a_profile_that_changed(small)
done("calibrate", "calibrate", "--virtual", "4028", "--quick", "--groups", "0,5", "--output", path("4028.yaml"), timeout=280)
hostile(compared("0-10.html", path("4028.yaml"), "0-10", "--repeats", "5", "--variant", "lend 4-5"))
a_profile_alone("published.html", "4028")
a_profile_alone("calibrated.html", path("4028.yaml"))
unwritable()
if not CHROMIUM:
    print("no Chromium: how the pages look was not checked")
finish()
