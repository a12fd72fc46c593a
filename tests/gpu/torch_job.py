"""Ranks of torch.distributed, in one process group after another: every all-reduce must be right to the bit.

Started once a rank with RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
With the argument "groups" also: a group that is split off the first, one that shares its resources (where
the plugin leaves NCCL alone), and one of a single rank, all alive together with the first."""
import os
import sys
import time

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(device)
several = "groups" in sys.argv[1:]
# A bound device makes torch split new groups off the first by ncclCommSplit.
dist.init_process_group("nccl", device_id=torch.device("cuda", device) if several else None)


def check(group, name, n):
    ranks = dist.get_process_group_ranks(group)
    size = len(ranks)
    x = torch.arange(n, device="cuda", dtype=torch.int64) + rank
    dist.all_reduce(x, group=group)
    right = torch.arange(n, device="cuda", dtype=torch.int64) * size + sum(ranks)
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
    busbw = y.numel() * 4 * 2 * (size - 1) / size / seconds / 1e9
    print(f"torch {torch.__version__} nccl {torch.cuda.nccl.version()} rank {rank} group {name} wrong {wrong} "
          f"busbw {busbw:.1f}", flush=True)
    assert wrong == 0


check(None, "world", 1 << 20)
check(dist.new_group(list(range(world))), "second", 1 << 20)
if several:
    share = dist.ProcessGroupNCCL.Options()
    share.config.split_share = 1
    alone = [dist.new_group([r]) for r in range(world)][rank]
    groups = [("shared", dist.new_group(list(range(world)), pg_options=share)), ("alone", alone)]
    for _ in range(2):
        for name, group in groups + [("world", None)]:
            check(group, name, 1 << 20)
dist.destroy_process_group()
