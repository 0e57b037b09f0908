"""Residual networks for 32 x 32 images, and the tutorial's perceptron."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

Builder = Callable[..., nn.Module]
"""Makes a network from the keywords num_classes, channels and image_size."""


def mlp(*, num_classes: int, channels: int, image_size: int) -> nn.Module:
    """Pixels-512-512-classes with ReLU: the Fashion-MNIST tutorial's network (784-512-512-10)."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(channels * image_size * image_size, 512),
        nn.ReLU(),
        nn.Linear(512, 512),
        nn.ReLU(),
        nn.Linear(512, num_classes),
    )


def resnet_with_cifar_stem(depth: int) -> Builder:
    """torchvision's ResNet with a 3 x 3 stem of stride 1 and no pooling: 23.5 M parameters at depth 50 and 10 classes.

    Residual branches start at zero and the classifier small, as in OpenMMLab's ResNet_CIFAR, whose accuracies the
    recipes quote; without that the loss leaps in the first steps at their learning rates.
    """

    def build(*, num_classes: int, channels: int, image_size: int) -> nn.Module:
        from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

        block, layers = {18: (BasicBlock, [2, 2, 2, 2]), 50: (Bottleneck, [3, 4, 6, 3])}[depth]
        model = ResNet(block, layers, num_classes=num_classes, zero_init_residual=True)
        model.conv1 = nn.Conv2d(channels, 64, kernel_size=3, stride=1, padding=1, bias=False)
        nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
        model.maxpool = nn.Identity()
        nn.init.normal_(model.fc.weight, std=0.01)
        nn.init.zeros_(model.fc.bias)
        built: nn.Module = model
        return built

    return build


class SmallResNet(nn.Module):
    """He et al. 2016, section 4.2: 6n + 2 layers in three stages of 16, 32 and 64 channels.

    Shortcuts are 1 x 1 convolutions where shapes change. 0.27 M parameters at depth 20 and 10 classes.
    """

    def __init__(self, depth: int, *, num_classes: int, channels: int) -> None:
        super().__init__()
        blocks = (depth - 2) // 6
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
        stages: list[nn.Module] = []
        width = 16
        for stage, out in enumerate((16, 32, 64)):
            for block in range(blocks):
                stages.append(_small_block(width, out, stride=2 if stage and not block else 1))
                width = out
        self.blocks = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """[B, channels, H, W] -> [B, num_classes]."""
        features = self.blocks(self.relu(self.bn1(self.conv1(images))))
        return self.fc(self.pool(features).flatten(1))  # type: ignore[no-any-return]  # modules are untyped calls


def _small_block(width: int, out: int, stride: int) -> nn.Module:
    from torchvision.models.resnet import BasicBlock

    shortcut = None
    if stride != 1 or width != out:
        shortcut = nn.Sequential(nn.Conv2d(width, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))
    block: nn.Module = BasicBlock(width, out, stride=stride, downsample=shortcut)
    return block


def small_resnet(depth: int) -> Builder:
    """A builder of `SmallResNet` at one depth."""

    def build(*, num_classes: int, channels: int, image_size: int) -> nn.Module:
        return SmallResNet(depth, num_classes=num_classes, channels=channels)

    return build
