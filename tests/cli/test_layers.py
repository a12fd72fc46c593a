"""One direction of dependency: which folder includes which, against the order of docs/design.md."""

import os
import re

from gv_cli import SOURCE, check, finish

# From the left to the right: a folder includes itself and what stands before it.
ORDER = ["base", "kernels", "config", "plugin", "profiler/gpu", "profiler/log", "profiler/collective", "profiler/probe",
         "handoff", "profiler/handoff", "profiler/import", "profiler/compare", "profiler/report", "profiler/fleet", "profiler/place",
         "profiler/doctor", "profiler/bundle", "profiler/cli"]
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def folder_of(path):
    found = [f for f in ORDER if path.startswith(f + "/")]
    return max(found, key=len) if found else None


def includes():
    for folder in ORDER:
        for at, _, names in os.walk(os.path.join(SOURCE, folder)):
            for name in names:
                if name.endswith((".c", ".h")):
                    path = os.path.join(at, name)
                    with open(path, encoding="utf-8") as file:
                        for included in INCLUDE.findall(file.read()):
                            yield os.path.relpath(path, SOURCE), included


pairs = list(includes())
check("sources were read", len(pairs) > 500, True)
for path, included in pairs:
    here, there = folder_of(path), folder_of(included)
    if there and here:
        check(f"{path} includes {included}", ORDER.index(there) <= ORDER.index(here), True)
    check(f"{path} includes {included}, of the tests", included.split("/")[0] in ("testbench", "tests"), False)
finish()
