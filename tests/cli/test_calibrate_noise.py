"""With 5 % noise on every duration, calibration leads to the published decisions, for 20 seeds."""

import os
from concurrent.futures import ThreadPoolExecutor

from calibration import decisions, faults, profile_of
from gv_cli import check, finish

SEEDS = int(os.environ.get("GV_SEEDS", "20"))


def decided(seed):
    env = faults(f"noise-{seed}", f"noise: 0.05\nseed: {seed}\n")
    _, out, _ = profile_of(f"noise-{seed}", "--only", "p2p,ring", env=env)
    return decisions(out)


def test_noise():
    wanted = decisions("4028")
    with ThreadPoolExecutor(2) as pool:
        for seed, got in enumerate(pool.map(decided, range(SEEDS))):
            check(f"seed {seed} decides as published", got, wanted)


test_noise()
finish()
