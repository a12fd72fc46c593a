"""gv100 run: the command keeps its standard streams, status and signals; one line closes."""

import json
import os
import signal
import subprocess
import tempfile
import time

from gv_cli import BIN, SLOW, check, check_in, environment, finish, gv100


def libc():
    """A library that may be preloaded anywhere, standing in for the plugin."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps if "libc.so" in line or "libc-2." in line)


PLUGIN = os.path.realpath(libc())
GV100 = os.path.join(BIN, "gv100")


def decision(comm, gpus, transport, gain=None, evidence="none", reason="because"):
    return {
        "event": "decision", "comm": comm, "gpus": gpus, "transport": transport,
        "evidence": evidence, "gain": gain, "reason": reason, "time": 1,
    }  # fmt: skip


P2P = decision("aa", "0-5", "p2p", 0.152, "measured", "edges 4-5 and 5-0 move.")
KEPT = decision("bb", "0-10", "default", -0.009, "measured", "8-10 has no P2P")
LOGS = [
    # lines in the log, what the closing line must be
    ([P2P], "gv100: GPUs 0-5 p2p (+15 %, measured): edges 4-5 and 5-0 move\n"),
    ([P2P] * 6, "gv100: GPUs 0-5 p2p (+15 %, measured): edges 4-5 and 5-0 move\n"),
    ([KEPT], "gv100: GPUs 0-10 default: 8-10 has no P2P\n"),
    (
        [P2P, KEPT, dict(P2P, comm="cc")],
        "gv100: GPUs 0-5 (2 times) p2p (+15 %, measured): edges 4-5 and 5-0 move; "
        "GPUs 0-10 default: 8-10 has no P2P\n",
    ),
    (
        [{"event": "warning", "text": "no profile"}] * 3,
        "gv100: 1 warning, the first: no profile\n",
    ),
    (
        [P2P, "cut in the mid"],
        "gv100: GPUs 0-5 p2p (+15 %, measured): edges 4-5 and 5-0 move\n",
    ),
]


def env_of(**more):
    return environment(GV100_PLUGIN=PLUGIN, **more)


def test_closing_line():
    for i, (lines, wanted) in enumerate(LOGS):
        text = "".join((l if isinstance(l, str) else json.dumps(l)) + "\n" for l in lines)
        done = gv100(
            "run", "--nccl", "2.28.9", "--", "sh", "-c", 'printf "%s" "$1" >>"$GV100_LOG"', "sh", text,
            env=env_of(),
        )  # fmt: skip
        check(f"log {i}", (done.returncode, done.stdout, done.stderr), (0, "", wanted))


def test_nothing_decided():
    done = gv100("run", "--nccl", "2.28.9", "true", env=env_of())
    check_in("no decision", "gv100: no decision", done.stderr)
    check_in("what was set", "NCCL_ENV_PLUGIN was set for NCCL 2.28.9", done.stderr)
    check("one line", done.stderr.count("\n"), 1)
    check("quiet", gv100("run", "-q", "--nccl", "2.28.9", "true", env=env_of()).stderr, "")
    done = gv100("run", "--nccl", "2.28.9", "true", env=env_of(GV100_DISABLE="1"))
    check("disabled", done.stderr, "gv100: switched off by GV100_DISABLE=1\n")


def test_variables():
    rows = [
        ("2.28.9", {}, "|" + PLUGIN),
        ("2.28.9", {"NCCL_ENV_PLUGIN": "mine"}, "|mine"),
        ("nonsense", {}, PLUGIN + "|" + PLUGIN),
    ]
    for release, more, wanted in rows:
        done = gv100(
            "run", "-q", "--nccl", release, "--", "sh", "-c", 'echo "$LD_PRELOAD|$NCCL_ENV_PLUGIN"',
            env=env_of(**more),
        )  # fmt: skip
        check(f"{release} {more}", done.stdout.strip(), wanted)


def test_streams_and_status():
    done = subprocess.run(
        [GV100, "run", "-q", "--nccl", "2.28.9", "--", "sh", "-c", "cat; echo err >&2; exit 7"],
        env=env_of(), input="in\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    check("streams and status", (done.returncode, done.stdout, done.stderr), (7, "in\n", "err\n"))
    done = gv100("run", "--", "no-such-program-here", env=env_of())
    check("no such program", done.returncode, 127)
    check_in("and it is named", "no-such-program-here: cannot be started", done.stderr)
    done = gv100("run", "--", "/etc/passwd", env=env_of())
    check("not a program", done.returncode, 126)
    done = gv100("run", "-q", "--nccl", "2.28.9", "--", "sh", "-c", "kill -TERM $$", env=env_of())
    check("ended by a signal", done.returncode, -signal.SIGTERM)
    done = gv100("run", "-q", "--nccl", "2.28.9", "sh", "-c", 'echo "$1"', "sh", "--json", env=env_of())
    check("options behind the command are the command's", done.stdout, "--json\n")


def test_signals_are_passed_on():
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        body = f"trap 'echo got; exit 5' {sig.name[3:]}; echo ready; while :; do sleep 0.05; done"
        with subprocess.Popen(
            [GV100, "run", "-q", "--nccl", "2.28.9", "--", "sh", "-c", body],
            env=env_of(), stdout=subprocess.PIPE, text=True, start_new_session=True,
        ) as job:  # fmt: skip
            check(f"{sig.name} ready", job.stdout.readline(), "ready\n")
            job.send_signal(sig)
            check(f"{sig.name} reached the command", job.stdout.readline(), "got\n")
            check(f"{sig.name} status", job.wait(timeout=30 * SLOW), 5)


def test_log_file():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.jsonl")
        write = ["sh", "-c", 'echo "$1" >>"$GV100_LOG"', "sh", json.dumps(P2P)]
        first = gv100("run", "--log", path, "--nccl", "2.28.9", "--", *write, env=env_of())
        second = gv100("run", "--nccl", "2.28.9", "--", "true", env=env_of(GV100_LOG=path))
        check_in("first", "GPUs 0-5 p2p", first.stderr)
        check_in("an older job's lines do not count", "no decision", second.stderr)
        with open(path, encoding="utf-8") as f:
            check("kept", len(f.readlines()), 1)
        folder_env = env_of(TMPDIR=folder)
        gv100("run", "--nccl", "2.28.9", "--", *write, env=folder_env)
        check("a temporary log is removed", os.listdir(folder), ["log.jsonl"])
        echo = ["sh", "-c", 'echo "${NCCL_ENV_PLUGIN:+on}"']
        done = gv100("run", "--log", folder + "/no/log", "--nccl", "2.28.9", "--", *echo, env=env_of())
        check("a log that cannot be written takes nothing from the job", (done.returncode, done.stdout), (0, "on\n"))
        check_in("and is said", "under the plugin, without a closing line", done.stderr)
        done = gv100("run", "--nccl", "2.28.9", "--", *write, env=env_of(TMPDIR=folder + "/no"))
        check_in("a TMPDIR that is not there", "GPUs 0-5 p2p", done.stderr)


def test_why_nothing():
    """The closing line says what was really set."""
    for nccl, more, words in [
        ("2.28.9", {}, "(NCCL_ENV_PLUGIN was set for NCCL 2.28.9)"),
        ("2.27.5", {}, "(LD_PRELOAD was set for NCCL 2.27.5)"),
        ("2.28.9", {"NCCL_ENV_PLUGIN": "mine"}, "(NCCL_ENV_PLUGIN=mine of yours was kept for NCCL 2.28.9)"),
        ("2.18.1", {}, "nothing was set: NCCL 2.18.1 has no tuner slot, the plugin needs 2.19 or later"),
    ]:
        done = gv100("run", "--nccl", nccl, "--", "true", env=env_of(**more))
        check_in(f"{nccl} {more}", words, done.stderr)


def test_without_the_plugin():
    done = gv100("run", "--", "sh", "-c", "echo $NCCL_ENV_PLUGIN; exit 3", env=environment(GV100_PLUGIN="/none"))
    check("runs all the same", (done.returncode, done.stdout), (3, "\n"))
    check_in("with the cause", "/none: GV100_PLUGIN names this file", done.stderr)


started = time.monotonic()
for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        test()
print(f"{time.monotonic() - started:.1f} s")
finish()
