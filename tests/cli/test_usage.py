"""What a wrong command line, a wrong file or a wrong machine gets: status, words, nothing on
standard output."""

import os
import tempfile

from gv_cli import SOURCE, check, check_in, environment, finish, gv100, sysfs

USAGE = [
    # arguments, status, what stderr must say
    ([], 2, "Usage: gv100"),
    (["explian"], 2, "did you mean 'explain'"),
    (["zzz"], 2, "there is no command 'zzz'; `gv100 --help` lists them"),
    (["explain", "--profil3"], 2, "--profil3"),
    (["explain", "--profile", "4028", "--gpus", "0-"], 2, "the end of the range is missing"),
    (["explain", "--profile", "4028", "--gpus", "5-0"], 2, "the range runs backwards"),
    (["explain", "--profile", "4028", "--gpus", "0,0"], 2, "named twice"),
    (["explain", "--profile", "4028", "--gpus", "0-70"], 2, "0 to 63"),
    (["explain", "--profile", "4028", "--gpus", "0-11"], 2, "there is no GPU 11"),
    (["explain", "--profile", "4028", "--operations", "AllRedcue"], 2, "AllReduce"),
    (["explain", "--profile", "4028", "--nccl", "two"], 2, "2.28.9"),
    (["explain", "--profile", "4028", "--nccl", "2.18.6"], 2, "NCCL 2.18.6 has no tuner slot; the plugin needs 2.19"),
    (["explain", "--profile", "4029"], 3, "did you mean '4028'"),
    (["show", "--profile", "./none.yaml"], 3, "none.yaml"),
    (["show", "--machine", "/nonexistent"], 3, "/nonexistent"),
    (["env", "--nccl", "2.18.6"], 3, "2.19"),
    (["env", "--nccl", "/nonexistent/libnccl.so.2"], 3, "/nonexistent/libnccl.so.2"),
    (["run"], 2, "a command is missing"),
    (["verify", "--pair-timeout", "nan"], 2, "'nan' is no number"),
    (["verify", "--pair-timeout", "inf"], 2, "'inf' is no number"),
    (["verify", "--pair-timeout", ""], 2, "'' is no number"),
]


def test_errors():
    for args, status, words in USAGE:
        done = gv100(*args, env=environment(GV100_PLUGIN="/bin/sh"))
        check(f"{args} status", done.returncode, status)
        check_in(f"{args} stderr", words, done.stderr)
        check(f"{args} stdout", done.stdout, "")


def test_full_output():
    """A result that did not get out is no success, as text or as JSON."""
    log = os.path.join(SOURCE, "docs/questions/files/before.log")
    for args in (["--help"], ["--version"], ["explain", "-p", "4028"], ["show", "-p", "4028"], ["check", "-p", "4028"],
                 ["place", "-p", "4028"], ["env", "-n", "2.28.9"], ["log", log], ["calibrate", "--virtual", "4028", "--dry-run"]):
        for more in ([], ["--json"]) if args[0][0] != "-" else ([],):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = gv100(*args, *more, stdout=full)
            check(f"{args} {more} to a full disk", done.returncode, 3)
            name = "gv100" if args[0][0] == "-" else f"gv100 {args[0]}"
            words = f"{name}: the result could not be written to standard output\n"
            check(f"{args} {more} to a full disk: words", done.stderr, words)


def test_place_in_a_profile():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bad.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write("gv100_profile: 1\nnmae: x\n")
        done = gv100("show", "--profile", path)
        check("status", done.returncode, 3)
        check_in("file, line and column", f"gv100 show: {path}:2:1: ", done.stderr)
        check_in("nearest key", "name", done.stderr)


def test_help():
    done = gv100("--help")
    check("help status", done.returncode, 0)
    lines = done.stdout.splitlines()
    check("help fits a screen", len(lines) <= 24 and max(map(len, lines)) <= 80, True)
    for name in ("explain", "show", "check", "doctor", "place", "env", "run"):
        check_in(f"{name} is listed", f"  {name} ", done.stdout)
        page = gv100(name, "--help")
        check(f"{name} --help status", page.returncode, 0)
        check_in(f"{name} --help", f"Usage: gv100 {name}", page.stdout)
        check(f"help {name}", gv100("help", name).stdout, page.stdout)
    check("version", gv100("--version").stdout.split()[0], "gv100")


def test_check():
    root = sysfs()
    check("this machine", gv100("check", "-p", "4028", "-m", root).returncode, 0)
    check("looked up", gv100("check", "-m", root).returncode, 0)
    board = os.path.join(root, "bus/pci/devices/0000:1a:00.0/device")
    with open(os.path.realpath(board), "w", encoding="utf-8") as f:
        f.write("0x1df6\n")
    done = gv100("check", "-p", "4028", "-m", root)
    check("another board", done.returncode, 1)
    check_in("the field", "GPU 0 PCI id", done.stdout)
    check_in("here and there", "1df6", done.stdout)


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        test()
finish()
