"""The plugin inside programs: forks, ends in the middle of an init, copies, and programs that never
use NCCL, which must not notice it."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

BIN, LIB = os.environ["GV_BIN_DIR"], os.environ["GV_LIB_DIR"]
PLUGIN = os.path.join(LIB, "libnccl-tuner-gv100.so")
SLOW = int(os.environ.get("GV_SLOW", "1"))  # how much longer a sanitizer makes everything
FULL = os.environ.get("GV_TORTURE_FULL") == "1"

failed = []


def check(what, got, want):
    if got != want:
        failed.append(what)
        print(f"FAILED {what}\n    got    {got}\n    wanted {want}")


def run(*command, preload=None, env=None):
    e = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "GV100_", "LD_PRELOAD"))}
    e.update(env or {})
    if preload:
        e["LD_PRELOAD"] = preload
    done = subprocess.run(command, env=e, stdin=subprocess.DEVNULL, capture_output=True, timeout=120 * SLOW,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def process(*args, **kwargs):
    return run(os.path.join(BIN, "gv-torture-process"), *map(str, args), **kwargs)


with tempfile.TemporaryDirectory() as folder:
    COPY = os.path.join(folder, "another-name.so")
    shutil.copy(PLUGIN, COPY)

    for args in (["reopen", 1000 if FULL else 200], ["fork", 500 if FULL else 40], ["exit"],
                 ["end-thread"], ["twice", COPY]):
        status, out, err = process(*args)
        check(f"{args[0]}: {err.decode(errors='replace')[-400:]}", status, 0)
        if args[0] == "fork":
            print(out.decode().strip())

    # getenv is libc's for all that is not NCCL's, and for NCCL's where nothing is planned.
    check("getenv", process("names", preload=PLUGIN), process("names"))
    for preload in (PLUGIN, PLUGIN + ":" + COPY):
        check(f"calls go on to NCCL through {preload.count(':') + 1} preloaded",
              run(os.path.join(BIN, "gv-torture-nccl"), preload=preload),
              run(os.path.join(BIN, "gv-torture-nccl")))

    PROGRAMS = [["ls", "/"], ["ls", "/nonexistent"], ["bash", "-c", "echo $HOME; exit 7"],
                ["python3", "-S", "-c", "import os; print(os.environ.get('HOME'), os.getenv('NCCL_DEBUG'))"],
                ["env", "-i", "A=b", "sh", "-c", "echo $A"], ["true"], ["false"]]
    for program in PROGRAMS:
        check(" ".join(program), run(*program, preload=PLUGIN), run(*program))
    with open(os.path.join(folder, "static.c"), "w", encoding="ascii") as f:
        f.write('#include <stdio.h>\n#include <stdlib.h>\n'
                'int main(void) { return puts(getenv("HOME") ? "set" : "not set") < 0; }\n')
    static = os.path.join(folder, "static")
    if shutil.which("cc") and not subprocess.run(["cc", "-static", "-o", static, static + ".c"],
                                                 capture_output=True, check=False).returncode:
        check("a static program", run(static, preload=PLUGIN), run(static))
    else:
        print("skipped: a static program (no static libc)")


def milliseconds(preload):
    """Of true, the best of many: its start, the plugin's loading, its end."""
    best = 1e9
    for _ in range(200):
        begin = time.perf_counter()
        run("true", preload=preload)
        best = min(best, (time.perf_counter() - begin) * 1e3)
    return best


if FULL:
    bare, loaded = milliseconds(None), milliseconds(PLUGIN)
    print(f"true: {bare:.2f} ms, preloaded {loaded:.2f} ms")
bare, loaded = (float(process("cost", preload=p)[1]) for p in (None, PLUGIN))
print(f"getenv: {bare:.1f} ns, preloaded {loaded:.1f} ns")
print(f"{len(failed)} failed")
sys.exit(1 if failed else 0)
