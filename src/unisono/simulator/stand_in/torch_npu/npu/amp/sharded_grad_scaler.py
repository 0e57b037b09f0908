"""The loss scaler for sharded parameters."""

from __future__ import annotations

from typing import Any

from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler as _Sharded


class ShardedGradScaler(_Sharded):
    """torch's, on npu."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("npu", *args, **kwargs)
