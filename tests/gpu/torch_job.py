"""Two ranks of torch.distributed, one after another group: every all-reduce must be right to the bit.

Started once a rank with RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT."""
import os
import time

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(device)
dist.init_process_group("nccl")


def check(group, name, n):
    x = torch.arange(n, device="cuda", dtype=torch.int64) + rank
    dist.all_reduce(x, group=group)
    right = torch.arange(n, device="cuda", dtype=torch.int64) * world + world * (world - 1) // 2
    wrong = int((x != right).sum())
    y = torch.ones(64 << 20, device="cuda")
    for _ in range(5):
        dist.all_reduce(y, group=group)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        dist.all_reduce(y, group=group)
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - start) / 20
    busbw = y.numel() * 4 * 2 * (world - 1) / world / seconds / 1e9
    print(f"torch {torch.__version__} nccl {torch.cuda.nccl.version()} rank {rank} group {name} wrong {wrong} "
          f"busbw {busbw:.1f}", flush=True)
    assert wrong == 0


check(None, "world", 1 << 20)
check(dist.new_group(list(range(world))), "second", 1 << 20)
dist.destroy_process_group()
