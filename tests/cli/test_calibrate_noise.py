"""With 5 % noise on every duration, calibration leads to the published decisions, for 20 seeds."""

import os

from calibration import decisions, faults, profile_of
from gv_cli import check, finish

SEEDS = int(os.environ.get("GV_SEEDS", "20"))


def test_noise():
    wanted = decisions("4028")
    for seed in range(SEEDS):
        name = f"noise-{seed}"
        env = faults(name, f"noise: 0.05\nseed: {seed}\n")
        _, out, _ = profile_of(name, "--only", "p2p,ring", env=env)
        check(f"seed {seed} decides as published", decisions(out), wanted)


test_noise()
finish()
