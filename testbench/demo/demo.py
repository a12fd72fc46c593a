"""What the product is for, on the reference machine, without a GPU: the decisions from its published
profile, then the same decisions by the plugin inside a NCCL host, in one process."""

import json
import os
import subprocess
import sys

PROFILE = "4028"
RELEASE = "2.28.9"
GROUPS = ["0,5", "0-5", "0-7", "0-9", "0-10", "0-4", "7,9"]
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def style(code, text):
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


def title(number, text):
    print(style("1", f"{number}. {text}"))
    print(style("2", "-" * (len(text) + 3)))


def tool(build, name, *args):
    """Runs a program of the build; its standard output, or the end of the demo with its errors."""
    path = os.path.join(build, "bin", name)
    done = subprocess.run([path, *args], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"demo: {name} {' '.join(args)} ended with {done.returncode}; its message is above")
    return done.stdout


def groups_as_options(option):
    return [word for group in GROUPS for word in (option, group)]


# The machine, drawn from the profile.


def board_name(gpu):
    return gpu["model"].replace("Tesla ", "").replace("-PCIE", "")


def draw_machine(profile):
    joined = {p["from"][0]: p["to"][0] for p in profile["paths"] if p["nvlinks"]}
    nodes = {}
    for gpu in profile["gpus"]:
        nodes.setdefault(gpu["numa_node"], {}).setdefault(gpu["island"], []).append(gpu)
    for node, islands in sorted(nodes.items()):
        for i, gpus in enumerate(islands.values()):
            left = f"CPU node {node} -+-" if i == 0 else "            +-"
            if len(islands) == 1:
                left = f"CPU node {node} ---"
            kinds = {}
            for gpu in gpus:
                kinds.setdefault(board_name(gpu), []).append(str(gpu["index"]))
            boards = ", ".join(f"{','.join(index)} {name}" for name, index in kinds.items())
            print(f"  {left} {'PCIe switch' if len(gpus) > 1 else 'GPU':<11}  {boards}")
    for a, b in joined.items():
        print(f"  NVLink joins GPU {a} and GPU {b}.")


def introduce(build):
    profile = json.loads(tool(build, "gv100", "show", "--profile", PROFILE, "--json"))
    title(1, f"The reference machine: {len(profile['gpus'])} GPUs, measured {profile['provenance']['date']}")
    draw_machine(profile)
    print(
        """
  NCCL joins GPUs under one switch by P2P. Between the switches of one CPU node the driver offers
  P2P too, yet NCCL goes through host memory (SHM) there, and two slow edges bound a whole ring.
  NCCL_P2P_LEVEL=PHB would change that for every communicator of the process, also for those that
  measured slower. gv100 decides for each communicator, from what was measured.
"""
    )


# What the plugin did, as the NCCL host saw it.


def crossing(decision):
    """The pairs that NCCL leaves on SHM."""
    edges = decision["ring"]["edges"]
    return {frozenset((e["from"], e["to"])) for e in edges if e["default"] == "SHM"}


def live_ring(comm, crossings):
    if not comm["edges"]:
        return "-"
    text = str(comm["edges"][0]["from"])
    for edge in comm["edges"]:
        if edge["transport"] == "SHM":
            mark = style("31", "~SHM~")
        elif frozenset((edge["from"], edge["to"])) in crossings:
            mark = style("32", "=P2P=")
        else:
            mark = "-"
        text += f" {mark} {edge['to']}"
    return text


def on_shm(edges):
    return sum(edge["transport"] == "SHM" for edge in edges)


def agrees(comm, decision):
    """Another order of the ring is NCCL's own affair; how many edges stay on SHM is the decision."""
    handed_over = decision["transport"] != "default"
    return (
        on_shm(comm["edges"]) == on_shm(decision["ring"]["edges"])
        and bool(comm["topology_file"]) == handed_over
    )


def show_live(build, decisions):
    title(3, f"The plugin itself, in one process, {len(GROUPS)} communicators alive together")
    print(
        f"""
  libnccl-tuner-gv100.so is loaded by a stand-in for NCCL {RELEASE} that makes its calls in the same
  order and builds rings and transports by the same rules. One variable was set: NCCL_ENV_PLUGIN.

  GPUs   topology  ring as NCCL now builds it"""
    )
    output = tool(
        build, "gv-nccl-host", "--machine", PROFILE, "--release", RELEASE, "--mode", "threads",
        *groups_as_options("--comm"), "--alltoall", "--json",
    )  # fmt: skip
    comms = [json.loads(line) for line in output.splitlines() if line.strip()]
    crossings = set().union(*(crossing(d) for d in decisions))
    wrong = 0
    for comm, decision in zip(comms, decisions):
        handed = "edited" if comm["topology_file"] else "untouched"
        print(f"  {comm['gpu_list']:<6} {handed:<9} {live_ring(comm, crossings)}")
        if not agrees(comm, decision) or comm["alltoall"] != "ok":
            wrong += 1
            print(style("31", f"         not as decided, or all-to-all failed ({comm['alltoall']})"))
    if wrong or len(comms) != len(decisions):
        sys.exit(f"\ndemo: {len(comms)} communicators, {wrong} of them not as decided above")
    print(
        f"\n  {style('32', 'All ' + str(len(comms)) + ' as decided above')}, and an all-to-all works "
        "in each (CUDA allows 8 peers a GPU)."
    )


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: demo.py BUILD-FOLDER")
    build = sys.argv[1]
    introduce(build)
    title(2, "What is decided for groups of these GPUs, and why (busbw of AllReduce, 1 GiB)")
    options = ["--profile", PROFILE, *groups_as_options("--gpus")]
    sys.stdout.flush()
    decisions = json.loads(tool(build, "gv100", "explain", *options, "--json"))
    subprocess.run([os.path.join(build, "bin", "gv100"), "explain", *options], check=True)
    print()
    show_live(build, decisions)
    print(
        """
  On your machine:  gv100 run -- python train.py       more: README.md
"""
    )


main()
