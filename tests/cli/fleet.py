"""What the tests of `gv100 fleet` share: hosts of the testbench, each with cards of its own, measured
once."""

import os
import re
import subprocess
import tempfile

from gv_cli import BIN, SOURCE, environment, sys

FOLDER = tempfile.TemporaryDirectory(prefix="gv-fleet-")
MACHINES = os.path.join(SOURCE, "testbench/machines")


def machine(name, number, kind="4028", edit=lambda text: text):
    """A machine of this kind whose cards have UUIDs of their own, as --virtual finds it by name."""
    with open(os.path.join(MACHINES, kind, "machine.yaml"), encoding="utf-8") as f:
        text = f.read()
    text = edit(re.sub('uuid: "GPU-....', f'uuid: "GPU-{number:04x}', text))
    folder = os.path.join(FOLDER.name, "machines", name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "machine.yaml"), "w", encoding="utf-8") as f:
        f.write(text)


def measure(name, number, kind="4028", faults="", edit=lambda text: text):
    """Starts the calibration of one host; its profile is FOLDER/NAME.yaml."""
    machine(name, number, kind, edit)
    path = os.path.join(FOLDER.name, name + ".faults")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"noise: 0.01\nseed: {number}\n{faults}")
    env = environment(GV_VIRTUAL_FAULTS=path, GV_MACHINES_DIR=os.path.join(FOLDER.name, "machines"))
    return subprocess.Popen(
        [os.path.join(BIN, "gv100"), "calibrate", "--virtual", name, "--only", "hbm,host,p2p", "--pair-timeout", "0.3",
         "-o", os.path.join(FOLDER.name, name + ".yaml")],
        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def measure_all(hosts):
    """Hosts as {name: (number, kind, faults, edit)}."""
    for name, how in hosts.items():
        running = measure(name, *how)
        error = running.communicate()[1]
        if running.returncode:
            sys.exit(f"{name} could not be measured: {error}")
    return {name: os.path.join(FOLDER.name, name + ".yaml") for name in hosts}


def copy(name, text):
    path = os.path.join(FOLDER.name, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()
