"""A profile by which a tuner has something to say."""
import os
import re
import subprocess

from gvhost import BIN

PUBLISHED = os.path.join(os.environ["GV_SOURCE_DIR"], "config", "profiles", "4028.yaml")

# An AllReduce of 1 GiB that a tuner wins: the figures are invented, only their order matters.
GROUP = """  - gpus: {gpus}
    op: AllReduce
    bytes: 1073741824
    loaded: true
    variants:
      - edit: none
        runs: [{{name: test, busbw_gbs: [1.0, 1.0, 1.0]}}]
      - edit: none
        algorithm: TREE
        protocol: LL
        channels: 2
        runs: [{{name: test, busbw_gbs: [2.0, 2.0, 2.0]}}]
"""


def profile(folder, release, gpus):
    """The reference machine, as if it had been measured with this release."""
    with open(PUBLISHED, encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r'nccl: "?2\.23\.4"?', f'nccl: "{release}"', text)
    text = text.replace("\ngroups:\n", "\ngroups:\n" + "".join(GROUP.format(gpus=g) for g in gpus))
    path = os.path.join(folder, f"{release}.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def imported(folder, rows):
    """The reference machine with a tuner configuration of these rows."""
    conf, path = os.path.join(folder, "tuner.conf"), os.path.join(folder, "imported.yaml")
    with open(conf, "w", encoding="utf-8") as f:
        f.write(rows)
    subprocess.run([os.path.join(BIN, "gv100"), "import", conf, "--into", PUBLISHED, "-o", path],
                   stdout=subprocess.DEVNULL, check=True)
    return path
