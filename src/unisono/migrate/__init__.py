"""Moving a CUDA training script to NPUs: reads Python sources, rewrites what is certain, reports the rest.

The way through: `tree` finds files and runs them in parallel; `engine` parses one file with LibCST, walks it once
and asks the rules; rules (one file a family, in `rules/`) answer with findings and edits; `edits` applies those to
the bytes of the source; `report` renders. Nothing here imports torch.
"""

from __future__ import annotations
