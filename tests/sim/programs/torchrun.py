"""torchrun over another program: the number of ranks, the program, its arguments. Leaves NPUs free where there are more."""

from __future__ import annotations

import sys

from torch.distributed.run import main

main(["--standalone", "--nproc-per-node", sys.argv[1], *sys.argv[2:]])
