"""Modules of torch_npu.contrib that image classifiers use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torch_npu._missing import also_known_as, missing_names

__all__ = [
    "BiLSTM", "ChannelShuffle", "DropoutWithByteMask", "FastBatchNorm1d", "FastBatchNorm2d", "FastBatchNorm3d",
    "FastSyncBatchNorm", "Focus", "LabelSmoothingCrossEntropy", "Mish", "NpuCachedDropout", "NpuDropPath",
    "NpuFairseqDropout", "NpuPreGenDropout", "Prefetcher", "SiLU", "Swish",
]  # fmt: skip


class SiLU(nn.Module):
    """x times its logistic."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(x)


Swish = SiLU


class Mish(nn.Module):
    """x times the hyperbolic tangent of its softplus."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return F.mish(x)


class FastBatchNorm1d(nn.BatchNorm1d):
    """Batch norm, by the real one's signature: without device and type."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)


class FastBatchNorm2d(nn.BatchNorm2d):
    """Batch norm, by the real one's signature: without device and type."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)


class FastBatchNorm3d(nn.BatchNorm3d):
    """Batch norm, by the real one's signature: without device and type."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)


class FastSyncBatchNorm(nn.SyncBatchNorm):
    """Batch norm over all ranks."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any | None = None,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, process_group, device, dtype)


class LabelSmoothingCrossEntropy(nn.Module):
    """Cross entropy with `smooth_factor` of the target spread over the other classes."""

    def __init__(self, num_classes: int = 1000, smooth_factor: float = 0.0) -> None:
        super().__init__()
        self.on_value = 1.0 - smooth_factor
        self.off_value = smooth_factor / (num_classes - 1)
        self.num_classes = num_classes

    def forward(self, pred: Tensor, target: Tensor) -> Tensor:
        hot = F.one_hot(target.long(), self.num_classes).to(pred.dtype)
        spread = hot * (self.on_value - self.off_value) + self.off_value
        return -(spread * F.log_softmax(pred, dim=-1)).sum(-1).mean()


class NpuDropPath(nn.Module):
    """Leave out the branch for some samples, and scale the others up."""

    def __init__(self, drop_prob: float | None = None) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    @classmethod
    def enable_droppath_ensemble(cls, model: nn.Module) -> None:
        """Accepted; masks are drawn one at a time here."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.drop_prob or not self.training:
            return x
        kept = 1 - self.drop_prob
        mask = torch.rand((x.shape[0],) + (1,) * (x.dim() - 1), dtype=x.dtype, device=x.device).add_(kept).floor_()
        return x.div(kept) * mask


class DropoutWithByteMask(nn.Dropout):
    """Dropout; the seed's range is accepted."""

    def __init__(self, p: float = 0.5, inplace: bool = False, max_seed: int = 2**10 - 1) -> None:
        super().__init__(p, inplace)


class _NamedDropout(nn.Dropout):
    def __init__(self, p: float, module_name: str | None = None) -> None:
        super().__init__(p)
        self.module_name = module_name


class NpuFairseqDropout(_NamedDropout):
    """Dropout by fairseq's signature."""


class NpuCachedDropout(_NamedDropout):
    """Dropout; masks are drawn when they are needed."""

    @classmethod
    def enable_dropout_ensemble(cls, model: nn.Module) -> None:
        """Accepted; masks are drawn one at a time here."""


class NpuPreGenDropout(_NamedDropout):
    """Dropout; masks are drawn when they are needed."""


class ChannelShuffle(nn.Module):
    """Interleave two groups of channels (Zhang et al. 2017); with split_shuffle, give them back apart."""

    def __init__(self, in_channels: int, groups: int = 2, split_shuffle: bool = True) -> None:
        super().__init__()
        if groups != 2:
            raise ValueError("only two groups, as in torch_npu")
        self.groups = groups
        self.split_shuffle = split_shuffle
        self.in_channels = in_channels

    def forward(self, x1: Tensor, x2: Tensor) -> Any:
        x = torch.cat([x1, x2], dim=1)
        batch, channels, height, width = x.shape
        x = x.view(batch, self.groups, channels // self.groups, height, width).transpose(1, 2).reshape(x.shape)
        return x.chunk(2, dim=1) if self.split_shuffle else x


class Focus(nn.Module):
    """Four shifted halves of an image as channels, then convolution, batch norm and SiLU (YOLOv5)."""

    def __init__(
        self, c1: int, c2: int, k: int = 1, s: int = 1, p: int | None = None, g: int = 1, act: bool | nn.Module = True
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(c1 * 4, c2, k, s, k // 2 if p is None else p, groups=g, bias=False)
        self.bn = nn.BatchNorm2d(c2)
        self.act = nn.SiLU() if act is True else act if isinstance(act, nn.Module) else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        parts = [x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]]
        activated: Tensor = self.act(self.bn(self.conv(torch.cat(parts, 1))))
        return activated


class BiLSTM(nn.Module):
    """An LSTM in both directions, without dropout."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.rnn = nn.LSTM(input_size, hidden_size, bidirectional=True)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.rnn(inputs)[0]
        return output


class Prefetcher:
    """Hands out batches on the current NPU. `next` gives (None, None) after the last."""

    def __init__(self, loader: Iterable[tuple[Tensor, Tensor]], stream: Any = None) -> None:
        self.loader: Iterator[tuple[Tensor, Tensor]] = iter(loader)
        self.stream = stream

    def next(self) -> tuple[Tensor | None, Tensor | None]:
        """The next batch."""
        batch = next(self.loader, None)
        if batch is None:
            return None, None
        images, target = batch
        return images.to("npu", non_blocking=True), target.to("npu", non_blocking=True)


__getattr__ = missing_names(__name__)
also_known_as(__name__, "activations", "bidirectional_lstm", "channel_shuffle", "crossentropy", "drop_path", "ensemble_dropout", "focus", "npu_modules", "prefetcher")
