"""Bad days: NCCL's default, the job goes on, one warning that names cause and next step."""
import os
import shutil
import stat
import subprocess
import tempfile
import threading
import time

from gvhost import *

FOLDER = tempfile.mkdtemp()
PROFILE = os.path.join(os.environ["GV_SOURCE_DIR"], "config", "profiles", "4028.yaml")
MACHINE = os.path.join(os.environ["GV_SOURCE_DIR"], "testbench", "machines", "4028", "machine.yaml")
TEXT = open(PROFILE, encoding="utf-8").read()
P6, S6 = "PPPPPP", "PPPPSS"


def write(name, text):
    path = os.path.join(FOLDER, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def default_with_warning(where, comm, *words):
    """Transports as without the plugin, no error, and one warning a process with these words."""
    check(f"{where}: error", comm["error"], None)
    check(f"{where}: transports", transports(comm), S6)
    check(f"{where}: file", comm["topology_file"], False)
    warnings = lines(comm, "WARN", OTHER_NCCL)
    check(f"{where}: one warning", len(warnings), 1)
    for word in words:
        check(f"{where}: the warning names '{word}' ({warnings})",
              bool(warnings) and word in warnings[0], True)


# --- profiles that cannot be used ---
PROFILES = [
    ("none there", os.path.join(FOLDER, "absent.yaml"), ["absent.yaml"]),
    ("a folder", FOLDER, []),
    ("empty", write("empty.yaml", ""), ["empty.yaml"]),
    ("cut", write("cut.yaml", TEXT[:len(TEXT) // 3]), ["cut.yaml"]),
    ("not YAML", write("noyaml.yaml", "{[\x07"), ["noyaml.yaml"]),
    ("unknown key", write("key.yaml", TEXT.replace("provenance:", "provenence:", 1)),
     ["key.yaml", "provenance"]),
    ("newer schema", write("newer.yaml", TEXT.replace("gv100_profile: 1", "gv100_profile: 7", 1)),
     ["newer.yaml", "7"]),
    ("other machine", write("other.yaml", TEXT.replace("10de:1db3", "10de:1db6").replace("1db3", "1db6")),
     []),
]
for what, path, words in PROFILES:
    for mode in ("threads", "processes"):
        comm = host("--mode", mode, "--comm", "0-5", env={"GV100_PROFILE": path}, status=0)[0]
        default_with_warning(f"profile {what}, {mode}", comm, *words)

# --- the verification stamp ---
kept = subprocess.run([os.path.join(BIN, "gv-nccl-host"), "--keep", "--no-plugin", "--comm", "0,1"],
                      capture_output=True, text=True, check=True).stderr.split()[-1]
stamp = open(os.path.join(kept, "verified.yaml"), encoding="utf-8").read()
shutil.rmtree(kept)
STAMPS = [
    ("absent", "none", ["gv100 verify"]),
    ("of another driver", write("driver.yaml", stamp.replace("580.173.02", "570.1")), ["570.1"]),
    ("of an earlier boot", write("boot.yaml", stamp.replace("40280000-0000", "40280001-0000", 1)),
     ["gv100 verify"]),
    ("cut", write("cutstamp.yaml", stamp[:len(stamp) // 2]), ["cutstamp.yaml"]),
    ("writable by others", write("open.yaml", stamp), ["open.yaml"]),
]
os.chmod(os.path.join(FOLDER, "open.yaml"), 0o666)
for what, path, words in STAMPS:
    comm = host("--stamp", path, "--comm", "0-5", status=0)[0]
    default_with_warning(f"stamp {what}", comm, *words)
comm = host("--stamp", write("good.yaml", stamp), "--comm", "0-5", status=0)[0]
check("a good stamp", transports(comm), P6)
comm = host("--stamp", "none", "--comm", "0-5", env={"GV100_ASSUME_VERIFIED": "1"}, status=0)[0]
check("GV100_ASSUME_VERIFIED", transports(comm), P6)

# --- the registry's folder ---
os.mkdir(os.path.join(FOLDER, "public"))
os.chmod(os.path.join(FOLDER, "public"), 0o777)
os.mkdir(os.path.join(FOLDER, "real"), 0o700)
os.symlink(os.path.join(FOLDER, "real"), os.path.join(FOLDER, "link"))
PLACES = [
    ("cannot be made", "/proc/gv100", ["GV100_SHM_DIR"]),
    ("is a file", write("file", ""), []),
    ("is a link", os.path.join(FOLDER, "link"), ["link"]),
    ("is open to all", os.path.join(FOLDER, "public"), ["public"]),
]
if os.getuid() == 0:
    os.mkdir(os.path.join(FOLDER, "planted"), 0o700)
    os.chown(os.path.join(FOLDER, "planted"), 12345, 12345)
    PLACES.append(("belongs to another user", os.path.join(FOLDER, "planted"), ["planted"]))
for release in ("2.28.9", "2.23.4"):
    for what, path, words in PLACES:
        for mode in ("threads", "processes"):
            comm = host("--release", release, "--mode", mode, "--comm", "0-5",
                        env={"GV100_SHM_DIR": path}, status=0)[0]
            default_with_warning(f"{release} {mode}: the folder {what}", comm, *words)


def can_mount(where):
    return os.getuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "gv100", where],
        capture_output=True, check=False).returncode == 0


full = os.path.join(FOLDER, "full")
os.mkdir(full, 0o700)
if can_mount(full):
    try:
        write("full/filler", "x" * 4096)
        comm = host("--mode", "processes", "--comm", "0-5", env={"GV100_SHM_DIR": full}, status=0)[0]
        default_with_warning("a full folder", comm)
        subprocess.run(["mount", "-o", "remount,ro", full], check=True)
        comm = host("--mode", "processes", "--comm", "0-5", env={"GV100_SHM_DIR": full}, status=0)[0]
        default_with_warning("a read-only folder", comm)
    finally:
        subprocess.run(["umount", full], check=True)
else:
    print("skipped: a full and a read-only folder (mounting is not allowed here)")

# --- swept while a rank is late ---
swept = os.path.join(FOLDER, "swept")
os.mkdir(swept, 0o700)


def sweep():
    time.sleep(0.7)
    for name in os.listdir(swept):
        os.unlink(os.path.join(swept, name))


thread = threading.Thread(target=sweep)
thread.start()
comm = host("--mode", "processes", "--late", "5:1500", "--comm", "0-5", env={"GV100_SHM_DIR": swept},
            status=0)[0]
thread.join()
check("swept: error", comm["error"], None)
check("swept: all ranks alike", comm["consistent"], True)
check("swept: the default", (transports(comm), comm["topology_file"]), (S6, False))
check("swept: no long wait", comm["init_ms"] < 6000 * SLOW, True)

# --- ranks that differ or are lost ---
other = write("same-but-not.yaml", TEXT + "# another\n")
for release in ("2.28.9", "2.23.4"):
    comm = host("--release", release, "--mode", "processes", "--comm", "0-5", "--rank-env",
                f"3:GV100_PROFILE={other}", status=0)[0]
    default_with_warning(f"{release}: another profile on one rank", comm)
    comms = host("--release", release, "--mode", "processes", "--comm", "0-5", "--comm", "0-5",
                 "--rank-env", "3:GV100_PROFILE=/absent.yaml", status=0)
    for comm in comms:
        check(f"{release}: no profile on one rank", (transports(comm), comm["consistent"],
                                                      comm["init_ms"] < 2500 * SLOW), (S6, True, True))
    default_with_warning(f"{release}: no profile on one rank", comms[0], "absent.yaml")
    # a rank that cannot register has left a sign, so that nobody takes the others for all there are
    comms = host("--release", release, "--mode", "processes", "--comm", "0-5", "--comm", "0-5", "--comm", "0,5",
                 "--rank-env", "3:GV100_SHM_DIR=/proc/gv100", status=0)
    for comm in comms[:2]:
        check(f"{release}: one rank cannot register", (transports(comm), comm["consistent"], comm["topology_file"],
                                                       comm["init_ms"] < 2500 * SLOW), (S6, True, False, True))
        warned = lines(comm, "WARN", OTHER_NCCL)
        check(f"{release}: one rank cannot register: {warned}", all("a rank could not take part" in w or
                                                                    "/proc/gv100" in w for w in warned), True)
    check(f"{release}: those that can have their plan", transports(comms[2]), "PP")
    # nRanks is known before the topology only by preload; else the guess is found wrong at the
    # tuner's init, is said once, and ends plans for these processes
    comms = host("--release", release, "--mode", "processes", "--comm", "0-5", "--comm", "0-5",
                 "--rank-env", "3:GV100_DISABLE=1", status=0)
    check(f"{release}: off on one rank", [c["error"] for c in comms], [None, None])
    check(f"{release}: off on one rank: second communicator",
          (transports(comms[1]), comms[1]["consistent"]), (S6, True))
    check(f"{release}: off on one rank: warnings",
          len([l for c in comms for l in lines(c, "WARN", OTHER_NCCL)]), release == "2.28.9")
    check(f"{release}: off on one rank: no long wait", comms[0]["init_ms"] < 6000 * SLOW, True)
    steps = ("net", "register", "lookup", "topology", "tuner")
    for step in steps if release == "2.28.9" else steps[1::2]:
        for mode in ("threads", "processes"):
            run = host("--release", release, "--mode", mode, "--die", f"3:{step}", "--timeout", 4000,
                       "--comm", "0-5", status=1)[0]
            plain = host("--release", release, "--mode", mode, "--die", f"3:{step}", "--timeout", 500,
                         "--comm", "0-5", "--no-plugin", status=1)[0]
            # as much comes to an end as without the plugin, and no other rank falls with it
            check(f"{release} {mode}: dies at {step}", run["error"], plain["error"])
            # what it leaves behind does not hinder the next job
    comm = host("--release", release, "--mode", "processes", "--comm", "0-5", status=0)[0]
    check(f"{release}: the next job", transports(comm), P6)
    comm = host("--release", release, "--mode", "processes", "--abort", "2:lookup", "--timeout", 8000,
                "--comm", "0-5", status=1)[0]
    check(f"{release}: aborted in the middle of init", "aborted" in (comm["error"] or ""), True)

if os.getuid() == 0:
    comm = host("--mode", "processes", "--pid-namespaces", "--comm", "0-5")[0]
    if "77" in (comm["error"] or ""):
        print("skipped: PID namespaces (not allowed here)")
    else:
        check("ranks in PID namespaces of their own", transports(comm), P6)

# --- other machines and releases ---
wide = open(MACHINE, encoding="utf-8").read().split("gpus:", 1)
bridges = "".join(f'  - {{bus_id: "0001:{i:02x}:00.0", parent: "pci0001:00", node: 1, id: "8086:2030"}}\n'
                  for i in range(1, 216))
comm = host("--machine", write("machine.yaml", wide[0] + bridges + "gpus:" + wide[1]), "--comm", "0-5",
            env={"GV100_PROFILE": PROFILE}, status=0)[0]
check("a machine of 240 PCI devices", transports(comm), P6)
for release in ("2.28.10", "2.33.1", "2.40.2", "3.0.1"):
    comm = host("--release", release, "--comm", "0-5", status=0)[0]
    check(f"release {release}: no error, all alike", (comm["error"], comm["consistent"]), (None, True))

done()
