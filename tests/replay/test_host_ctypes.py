"""Programs that reach NCCL by dlopen and dlsym bypass the preloaded init calls: transports stay NCCL's
own, algorithm and protocol are all that is left, and the log says so."""
import ctypes
import os
import subprocess
import sys
import threading

if "GV_HOST_DIR" not in os.environ:  # the test itself; the job is this file once more
    from gvhost import *

    for release in ("2.27.7", "2.23.4"):
        # the host preloads a sanitizer's runtime too; CPython's own leaks are not ours
        env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        run = subprocess.run([os.path.join(BIN, "gv-nccl-host"), "--release", release, "--exec",
                              f"exec {sys.executable} {os.path.abspath(__file__)}"],
                             capture_output=True, text=True, timeout=120 * SLOW, check=False, env=env)
        check(f"{release}: status {run.stderr}", run.returncode, 0)
        result = dict(line.split("=", 1) for line in run.stdout.splitlines() if "=" in line)
        check(f"{release}: results", result.get("results"), "0 0 0 0 0 0")
        check(f"{release}: topology file", result.get("file"), "False")
        check(f"{release}: transports", result.get("transport"), "PPPPSS")
        check(f"{release}: the tuner is in use", "gv100" in result.get("tuner", ""), True)
        check(f"{release}: says that transports are not under control",
              "transport" in result.get("said", ""), True)
    done()

HOST = os.path.join(os.environ["GV_LIB_DIR"], "host")
cuda = ctypes.CDLL(os.path.join(HOST, "libcuda.so.1"))
nccl = ctypes.CDLL(os.path.join(HOST, "libnccl.so.2"))


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class Pair(ctypes.Structure):
    """Head of gv_host_result: what this test reads of it."""
    _fields_ = [("rank", ctypes.c_int), ("nranks", ctypes.c_int), ("device", ctypes.c_int),
                ("comm_id", ctypes.c_uint64), ("eval", ctypes.c_void_p),
                ("topology_file", ctypes.c_bool), ("rest", ctypes.c_char * 128)]


nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int]
nccl.ncclAllReduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                               ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
nccl.ncclCommDestroy.argtypes = [ctypes.c_void_p]
nccl.gv_host_result.argtypes = [ctypes.c_void_p, ctypes.POINTER(Pair)]
uid = UniqueId()
assert nccl.ncclGetUniqueId(ctypes.byref(uid)) == 0
results, files = [None] * 6, [None] * 6


def rank(i):
    comm = ctypes.c_void_p()
    cuda.gv_fakecuda_set_device(i)
    rc = nccl.ncclCommInitRank(ctypes.byref(comm), 6, uid, i)
    rc = rc or nccl.ncclAllReduce(None, None, 1 << 28, 7, 0, comm, None)
    pair = Pair()
    nccl.gv_host_result(comm, ctypes.byref(pair))
    files[i] = pair.topology_file
    results[i] = rc or nccl.ncclCommDestroy(comm)


threads = [threading.Thread(target=rank, args=(i,)) for i in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

LINES = []
EACH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_char_p)
nccl.gv_host_log_each(EACH(lambda user, tag, rank, level, text: LINES.append(text.decode())), None)
via = {line.split()[3]: line.split()[-1][0] for line in LINES if line.startswith("Channel 00")}
print("results=" + " ".join(map(str, results)))
print("file=" + str(any(files)))
print("transport=" + "".join(via[k] for k in sorted(via)))
print("tuner=" + "".join(line for line in LINES if line.startswith("Using tuner")))
print("said=" + " ".join(line for line in LINES if line.startswith("gv100") and "not under control" in line))
