"""The pages of docs/questions: their commands are run on the virtual reference machine, and what the
page shows must come of them. Blocks marked `console`: a line "$ COMMAND", then its output; "..." stands
for any lines, and inside a line for any text. Also: docs/profile.md is what the schema's table makes, and links lead somewhere."""

import os
import re
import shutil
import subprocess
import tempfile

from gv_cli import BIN, SOURCE, check, check_in, environment, finish, sysfs

LIB = os.environ["GV_LIB_DIR"]
DOCS = os.path.join(SOURCE, "docs")
PAGES = os.path.join(DOCS, "questions")
HOST = tempfile.TemporaryDirectory(prefix="gv-pages-")


def host():
    """A folder with what the doctor looks at, and a copy of the pages to run in."""
    for part in ("etc", "dev/shm", "home", "run"):
        os.makedirs(os.path.join(HOST.name, part))
    folder = os.path.join(HOST.name, "questions")
    shutil.copytree(PAGES, folder)
    shutil.copy(os.path.join(PAGES, "files/nccl.conf"), os.path.join(HOST.name, "etc"))
    env = environment(
        HOME=os.path.join(HOST.name, "home"),
        GV100_ROOT="..",
        GV100_ASSUME_VERIFIED="1",
        GV100_SYSFS=sysfs(),
        GV100_PLUGIN=os.path.join(LIB, "libnccl-tuner-gv100.so"),
        PATH=f"{BIN}:/usr/bin:/bin",
    )
    return folder, env


def commands(text):
    """(line, command, output) of each `console` block."""
    for block in re.finditer(r"^```console\n(.*?)^```$", text, re.M | re.S):
        line = text[: block.start()].count("\n") + 2
        for part in re.split(r"^(?=\$ )", block.group(1), flags=re.M):
            if part:
                command, _, output = part.partition("\n")
                yield line, command[2:], output.splitlines()
            line += part.count("\n")


def pattern(output):
    inside = re.escape("...")
    parts = [
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()).replace(inside, ".*") + "\n"
        for line in output
    ]
    return re.compile("".join(parts) + r"\Z")


def page(name, folder, env):
    with open(os.path.join(PAGES, name), encoding="utf-8") as f:
        text = f.read()
    found = list(commands(text))
    check(f"{name}: has commands", bool(found), True)
    for line, command, wanted in found:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, timeout=240,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )
        got = [part.rstrip() for part in done.stdout.splitlines()]
        if not pattern(wanted).match("".join(part + "\n" for part in got)):
            check(f"docs/questions/{name}:{line}: {command}", "\n".join(got), "\n".join(wanted))


def links(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            there = os.path.join(os.path.dirname(path), target)
            check(f"{os.path.relpath(path, SOURCE)}: {target} is there", os.path.exists(there), True)


def test_pages():
    folder, env = host()
    names = sorted(name for name in os.listdir(PAGES) if name.endswith(".md"))
    with open(os.path.join(PAGES, "README.md"), encoding="utf-8") as f:
        index = f.read()
    for name in names:
        if name != "README.md":
            page(name, folder, env)
            check_in(f"{name} is listed", f"({name})", index)


def test_profile_page():
    made = subprocess.run([os.path.join(BIN, "gv-profile-doc")], stdout=subprocess.PIPE, text=True, check=True).stdout
    with open(os.path.join(DOCS, "profile.md"), encoding="utf-8") as f:
        there = f.read()
    check("docs/profile.md is stale: cmake --build BUILD --target docs", there == made, True)


def test_links():
    links(os.path.join(SOURCE, "README.md"))
    for folder, _, names in os.walk(DOCS):
        for name in names:
            if name.endswith(".md"):
                links(os.path.join(folder, name))


for test in [value for name, value in list(globals().items()) if name.startswith("test_")]:
    test()
finish()
