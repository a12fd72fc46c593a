"""Help, man pages, completions and documents name the same commands and options."""

import glob
import os
import re
import subprocess
import tempfile

from gv_cli import BIN, SOURCE, check, environment, finish, gv100

OF_ARGP = {"help", "usage"}


def commands():
    return re.findall(r"^  ([a-z]+) +\S", gv100("--help").stdout, re.MULTILINE)


def help_options(command):
    return set(re.findall(r"^ +(?:-\S, )?--([a-z0-9-]+)", gv100(command, "--help").stdout, re.MULTILINE)) - OF_ARGP


def made(what):
    folder = tempfile.mkdtemp(prefix="gv-options-")
    subprocess.run([os.path.join(BIN, "gv100"), what, folder], check=True, env=environment())
    texts = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            texts[name] = f.read()
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
    return texts


def man_options(page):
    return set(re.findall(r"\\-\\-((?:[a-z0-9]|\\-)+)\\fR", page.split(".SH OPTIONS")[1].split(".SH ")[0]))


def bash_words(folder, line):
    """What bash offers for a command line that ends in the word to be completed."""
    script = (
        f"source {folder}/gv100; COMP_WORDS=({line} --); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1));"
        "_gv100; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    out = subprocess.run(["bash", "-c", script], check=True, stdout=subprocess.PIPE, text=True).stdout
    return set(out.split())


def test_same_options():
    pages, shells = made("--man"), made("--completions")
    names = commands()
    check("a page for each command", set(pages), {"gv100.1"} | {f"gv100-{n}.1" for n in names})
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "gv100"), "w", encoding="utf-8") as f:
            f.write(shells["gv100"])
        words = subprocess.run(
            ["bash", "-c", f"source {folder}/gv100; COMP_WORDS=(gv100 ''); COMP_CWORD=1; _gv100; echo ${{COMPREPLY[@]}}"],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout.split()  # fmt: skip
        check("bash: commands", [w for w in words if not w.startswith("-")], names)
        for name in names:
            options = help_options(name)
            check(f"{name} has options", bool(options), True)
            man = {o.replace("\\-", "-") for o in man_options(pages[f"gv100-{name}.1"])}
            check(f"{name}: man page", man, options)
            bash = {w[2:] for w in bash_words(folder, f"gv100 {name}")} - OF_ARGP
            check(f"{name}: bash", bash, options)
            part = re.search(rf"^    {name}\)\n(.*?);;", shells["_gv100"], re.MULTILINE | re.DOTALL).group(1)
            zsh = set(re.findall(r"(?:^ +|,)--([a-z0-9-]+)=?[}']", part, re.MULTILINE))
            check(f"{name}: zsh", zsh - OF_ARGP, options)
            fish = set(re.findall(rf"from {name}'(?: -s \S)? -l ([a-z0-9-]+) ", shells["gv100.fish"]))
            check(f"{name}: fish", fish, options)


def test_documents():
    """Every `gv100 COMMAND --option` that a document shows is one that the command takes."""
    known = {name: help_options(name) | OF_ARGP for name in commands()}
    for path in [os.path.join(SOURCE, "README.md"), *glob.glob(os.path.join(SOURCE, "docs/**/*.md"), recursive=True)]:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        shown = re.findall(r"gv100 ([a-z]+)((?: [^\n`|#;]*)?)", text)
        for command, rest in shown:
            where = f"{os.path.relpath(path, SOURCE)}: gv100 {command}{rest}"
            if " --" not in rest:
                continue
            if command == "run":
                rest = rest.split(" -- ")[0]
            check(f"{where} is a command", command in known, True)
            for option in re.findall(r" --([a-z0-9-]+)", rest):
                check(f"{where} --{option}", option in known.get(command, ()), True)


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        test()
finish()
