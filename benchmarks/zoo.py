"""Throughputs on 1 and 8 Ascend 910 that the model zoo's projects publish, to hold the forecast against.

Source: Ascend ModelZoo-PyTorch, snapshot of 2023-12, README tables of the named projects; mixed precision, fp16 gradients.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """One network and batch."""

    work: str
    batch: int
    """Images a card."""
    parameters: int
    one_card: float
    """Images a second."""
    eight_cards: float
    remark: str


PAIRS = (
    Published("ResNet-50 CIFAR, 512 a card", 512, 23_700_000, 4196, 32507, "a long step, little to hide"),
    Published("ResNet-50 CIFAR, 32 a card", 32, 23_700_000, 233, 1706, "3 epochs against 200"),
    Published(
        "ResNet-50 CIFAR, 256 a card", 256, 23_700_000, 2844, 16925, "another torch version than the other lines"
    ),
    Published("ResNet-50 CIFAR, 16 a card", 16, 23_700_000, 390, 1523, "faster alone than with 32 a card: two scripts"),
    Published("ResNet-50 ImageNet, 512 a card", 512, 25_557_032, 1680, 11910, "README of ID4149"),
    Published("MobileNetV3-Large, 128 a card", 128, 5_483_032, 1660.49, 6879.23, "limited by decoding on the host"),
)
