"""Writes a profile for the GPUs of this machine with given P2P state, for runs that have no calibration yet.

usage: profile.py STATE [ROWS]   STATE: verified, corrupt; ROWS: "LL" to have small AllReduces on ring/LL"""
import subprocess
import sys

state = sys.argv[1]
rows = len(sys.argv) > 2
query = "index,name,pci.bus_id,uuid,memory.total,driver_version"
out = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"],
                     capture_output=True, text=True, check=True).stdout
gpus = [[f.strip() for f in line.split(",")] for line in out.strip().splitlines()]
gpus.sort(key=lambda g: g[2])
driver = gpus[0][5]
print("gv100_profile: 1\nname: here\nmachine:\n  match: bus-id\n  gpus:")
for i, g in enumerate(gpus):
    bus = g[2].lower()[-12:]
    print(f"    - {{index: {i}, model: {g[1]}, bus_id: '{bus}', uuid: {g[3]}, memory_mib: {g[4]}, island: A{i}, sm: 90}}")
print(f"provenance: {{kind: imported, date: '2026-11-30', driver: '{driver}', nccl: '2.28.9'}}")
links = "nccl_class: NVL, smi_class: NV18, nvlinks: 18, "
if len(gpus) > 1:
    print(f"paths:\n  - {{from: '0', to: '1', both_directions: true, {links}p2p: {state}}}")
if rows and len(gpus) > 1:
    print("groups:")
    for size in (1024, 65536, 1048576):
        print(f"""  - gpus: 0-1
    op: AllReduce
    bytes: {size}
    variants:
      - {{edit: none, runs: [{{name: made-up, busbw_gbs: [1.0, 1.0, 1.0]}}]}}
      - {{edit: none, algorithm: RING, protocol: LL, runs: [{{name: made-up, busbw_gbs: [2.0, 2.0, 2.0]}}]}}""")
print("policy: {operations: [AllReduce]}\ncomplete: true")
