"""The lines that docs/administrators.md shows for Slurm, Open MPI and Ansible are run as they stand there:
launchers stand in that start the command once a node and print as theirs does (mpirun and ansible were
held against Open MPI 4.1.4 and ansible-core)."""

import os
import re
import subprocess
import tempfile

from gv_cli import BIN, SOURCE, check, environment, finish, sys

NODES = ("n1", "n2", "n3")
LAUNCHER = r'''
import os, shutil, subprocess, sys
me, args = os.path.basename(sys.argv[0]), sys.argv[1:]
nodes = os.environ["NODES"].split()
profile = lambda node: os.path.join(os.environ["PROFILES"], node + ".yaml")

def on(node, command):
    """One task, as it runs there: calibrate is played, all else is real."""
    if command[:2] == ["gv100", "calibrate"]:
        out = command[command.index("-o") + 1] if "-o" in command else node + ".yaml"
        if out != "/etc/gv100/host.yaml":
            shutil.copy(profile(node), out)
        return ""
    command = [profile(node) if a == "/etc/gv100/host.yaml" else a for a in command]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

if me == "ansible":
    group, module, words = args[0], args[args.index("-m") + 1], args[args.index("-a") + 1].split()
    assert group == "gpu" and module in ("command", "fetch")
    for node in nodes:
        if module == "command":
            print(f"{node} | CHANGED | rc=0 >>\n{on(node, words)}")
        else:
            path = dict(w.split("=") for w in words)
            to = os.path.join(path["dest"], node + path["src"])
            os.makedirs(os.path.dirname(to))
            shutil.copy(profile(node), to)
else:
    first = [a in ("gv100", "cat") for a in args].index(True)
    options, command = args[:first], args[first:]
    each = {"srun": "--ntasks-per-node=1", "mpirun": "ppr:1:node"}[me]
    assert each in options, f"{me} starts more than one task a node"
    for i, node in enumerate(nodes):
        label = f"{i}: " if "--label" in options else f"[1,{i}]<stdout>:" if "--tag-output" in options else ""
        sys.stdout.write("".join(label + line for line in on(node, command).splitlines(True)))
'''


def lines():
    with open(os.path.join(SOURCE, "docs/administrators.md"), encoding="utf-8") as f:
        section = f.read().split("## Many hosts\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [l for b in blocks for l in b.splitlines() if re.search(r"\b(srun|mpirun|ansible)\b", l) and l[0] != "#"]


def profile(name):
    with open(os.path.join(SOURCE, "config/profiles/4028.yaml"), encoding="utf-8") as f:
        text = f.read()
    return re.sub(r"^name: .*$", f"name: {name}", text, count=1, flags=re.MULTILINE)


def run(line, folder):
    tools, profiles, shared = (os.path.join(folder, d) for d in ("tools", "profiles.of.nodes", "shared"))
    for d in (tools, profiles, shared):
        os.mkdir(d)
    for name in ("srun", "mpirun", "ansible"):
        with open(os.path.join(tools, name), "w", encoding="utf-8") as f:
            f.write(f"#!{sys.executable}\n{LAUNCHER}")
        os.chmod(os.path.join(tools, name), 0o755)
    os.symlink(os.path.join(BIN, "gv100"), os.path.join(tools, "gv100"))
    for node in NODES:
        with open(os.path.join(profiles, node + ".yaml"), "w", encoding="utf-8") as f:
            f.write(profile(node))
    env = environment(NODES=" ".join(NODES), PROFILES=profiles)
    env["PATH"] = tools + ":" + env["PATH"]
    line = line.replace("/shared/profiles", shared)
    where = "profiles" if "fetch" in line else shared
    if "gv100 fleet" not in line and "-o /etc" not in line:
        line += f"; cd {folder} && gv100 fleet {where}"
    return subprocess.run(["bash", "-c", line], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)  # fmt: skip


shown = lines()
check("lines that are shown", len(shown), 7)
for line in shown:
    with tempfile.TemporaryDirectory() as folder:
        done = run(line, folder)
        check(f"{line}: status {done.stderr}", done.returncode, 0)
        if "-o /etc" not in line:
            check(f"{line}: result", done.stdout.splitlines()[-1], "3 hosts of 1 kind, 0 off")
finish()
