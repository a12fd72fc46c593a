"""Packs an installed tree as a wheel (PyPA's binary distribution format 1.0): bin/ to the scripts,
the rest to the data folder, and the module gv100 that tells where the plugin is.

Usage: wheel.py TREE SOURCE VERSION OUT
"""

import base64
import hashlib
import os
import platform
import re
import stat
import sys
import time
import zipfile

MODULE = '''"""Where gv100's plugin for NCCL is; the command is `gv100`."""

import importlib.metadata

__version__ = "{version}"


def plugin():
    """The path of libnccl-tuner-gv100.so, for NCCL_ENV_PLUGIN or LD_PRELOAD (`gv100 env` says which)."""
    for file in importlib.metadata.files("gv100") or ():
        if file.name == "libnccl-tuner-gv100.so":
            return str(file.locate().resolve())
    raise FileNotFoundError("libnccl-tuner-gv100.so is not in the installed package")
'''
METADATA = """Metadata-Version: 2.1
Name: gv100
Version: {version}
Summary: Makes NCCL use what was measured on a machine
Requires-Python: >=3.8
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """Wheel-Version: 1.0
Generator: gv100
Root-Is-Purelib: false
Tag: {tag}
"""


def collect(tree, source, version, tag):
    """Name in the wheel -> (bytes, executable)."""
    with open(os.path.join(source, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    info = f"gv100-{version}.dist-info"
    files = {
        "gv100/__init__.py": (MODULE.format(version=version).encode(), False),
        # pip removes a folder with all below it only where a file stands in it.
        f"gv100-{version}.data/data/share/gv100/README.md": (readme.encode(), False),
        f"{info}/METADATA": (METADATA.format(version=version, readme=readme).encode(), False),
        f"{info}/WHEEL": (WHEEL.format(tag=tag).encode(), False),
    }
    for folder, _, names in os.walk(tree):
        if re.search(r"/(bash-completion|zsh|fish)/", folder + "/"):
            continue  # no shell looks for them in a virtual environment
        for name in names:
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, tree)
            # A wheel has no links: what programs are linked with (its SONAME) becomes the file.
            if os.path.islink(path) and not re.search(r"\.so\.\d+$", name):
                continue
            if re.search(r"\.so\.\d+\.\d", name):
                continue
            place = f"scripts/{inside[4:]}" if inside.startswith("bin/") else f"data/{inside}"
            with open(path, "rb") as f:
                files[f"gv100-{version}.data/{place}"] = (f.read(), os.access(path, os.X_OK))
    return files, info


def main(tree, source, version, out):
    tag = f"py3-none-manylinux_2_28_{platform.machine()}"
    files, info = collect(tree, source, version, tag)
    record = []
    for name in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name][0]).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(files[name][0])}\n")
    record.append(f"{info}/RECORD,,\n")
    files[f"{info}/RECORD"] = ("".join(record).encode(), False)
    date = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
    path = os.path.join(out, f"gv100-{version}-{tag}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in sorted(files, key=lambda n: (".dist-info/" in n, n)):
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (stat.S_IFREG | (0o755 if files[name][1] else 0o644)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            wheel.writestr(entry, files[name][0])
    print(path)


main(*sys.argv[1:])
