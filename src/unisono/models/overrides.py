"""What a recipe changes in a network of any library: dropout, batch norm, grey input. No random number is drawn here."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unisono.errors import UserError


def set_batch_norm(model: nn.Module, *, momentum: float | None, eps: float | None) -> None:
    """Give every batch norm another momentum (share of the new batch) or eps; None leaves the model's own."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            if momentum is not None:
                module.momentum = momentum
            if eps is not None:
                module.eps = eps


class DropoutLinear(nn.Linear):
    """A linear layer behind dropout. Its parameters have a plain linear layer's names, so checkpoints fit both."""

    dropout: float

    def forward(self, features: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        return super().forward(F.dropout(features, self.dropout, self.training))


def set_dropout(model: nn.Module, probability: float, num_classes: int) -> None:
    """Set the dropout before the classifier, putting one there where the model has none.

    Raises:
        UserError: M104 no classifier was found.
    """
    own = _classifier_dropouts(model)
    for module in own:
        module.p = probability
    if own:
        return
    linears = [
        (path, module)
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear) and module.out_features == num_classes
    ]
    if not linears:
        raise UserError(
            "M104",
            f"model.dropout = {probability:g} with {type(model).__name__}",
            "it has neither dropout nor a linear layer at its end",
            "leave model.dropout out, or choose another model",
        )
    path, head = linears[-1]
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, _with_dropout(head, probability))


def _classifier_dropouts(model: nn.Module) -> list[nn.Dropout]:
    # torchvision keeps them in `classifier` (AlexNet to EfficientNet) or in `dropout` (Inception, GoogLeNet).
    ends = [child for name, child in model.named_children() if name in ("classifier", "dropout")]
    return [module for end in ends for module in end.modules() if isinstance(module, nn.Dropout)]


def _with_dropout(head: nn.Linear, probability: float) -> DropoutLinear:
    fresh = DropoutLinear(head.in_features, head.out_features, bias=head.bias is not None, device="meta")
    fresh.weight, fresh.bias, fresh.dropout = head.weight, head.bias, probability
    return fresh


def set_grey_input(model: nn.Module, name: str) -> None:
    """Make a model for colour take one channel: it computes what it would for the grey image three times over.

    Raises:
        UserError: M102 the model does not begin with a convolution over three channels.
    """
    first = next((module for module in model.modules() if isinstance(module, nn.Conv2d)), None)
    if first is None or first.in_channels != 3 or first.groups != 1:
        raise UserError(
            "M102",
            f"{name} takes no images of one channel",
            "it does not begin with a convolution over three channels",
            "choose another model, or a data set of colour images",
        )
    with torch.no_grad():
        first.weight = nn.Parameter(first.weight.sum(dim=1, keepdim=True))
    first.in_channels = 1
