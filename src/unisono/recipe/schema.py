"""What a recipe may say: one frozen section a room, units in the names, every field explained.

A recipe is written for a number of replicas; nothing in it depends on the devices present.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from unisono.recipe.duration import Duration, DurationValue

PositiveInt = Annotated[int, Field(gt=0)]
Probability = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]


class Section(BaseModel):
    """A part of a recipe: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class ModelRecipe(Section):
    """Which network, and how it is laid out."""

    name: str
    """A name of `unisono recipes --models`: own ("mlp", "resnet20_cifar", "resnet50_cifar"), torchvision's or timm's ("timm/NAME")."""
    dropout: Probability | None = None
    """Probability of dropout before the classifier; unset leaves the model's own."""
    batch_norm_momentum: Probability | None = None
    """Share of the new batch in running statistics; unset leaves the model's own."""
    batch_norm_eps: Annotated[float, Field(gt=0)] | None = None
    """Term added to the variance; unset leaves the model's own."""
    channels_last: bool = True
    """Keep images and convolution weights in NHWC memory where the platform gains from it."""
    compile: bool = False
    """Compile the model with torch.compile."""


class DataRecipe(Section):
    """Which images, and how they reach the device."""

    name: Literal["fashion_mnist", "cifar10", "cifar100", "image_folder", "synthetic"]
    """The data set's form; image_folder is `train/` and `val/` with a folder a class."""
    image_size: PositiveInt
    """Height and width that the model sees, in pixels."""
    num_classes: PositiveInt | None = None
    """Number of classes; unset takes the data set's own. Needed for synthetic."""
    storage: Literal["auto", "resident", "streamed"] = "auto"
    """resident: uint8 on the device, augmented in whole batches; streamed: decoded by workers; auto: resident for small sets."""
    workers: Annotated[int, Field(ge=0)] = 2
    """Loader processes per rank for streamed data; 0 decodes in the training process."""
    on_bad_image: Literal["fail", "skip"] = "fail"
    """What an unreadable image does: end the run, or be replaced by another image of its class and be counted."""
    bad_image_limit: Probability = 0.001
    """With skip: the share of bad images above which the run ends all the same."""
    synthetic_train_images: PositiveInt = 1024
    """Number of training images of a synthetic set."""
    synthetic_val_images: PositiveInt = 256
    """Number of validation images of a synthetic set."""


class AugmentRecipe(Section):
    """How training images are varied. All randomness is a function of (seed, epoch, sample index)."""

    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    """Mean a channel of images scaled to [0, 1], subtracted."""
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    """Standard deviation a channel of images scaled to [0, 1], divided by."""
    crop_padding: Annotated[int, Field(ge=0)] = 0
    """Zero padding in pixels on each side before a random crop to image_size; 0 for none."""
    horizontal_flip: Probability = 0.0
    """Probability of a mirror image."""
    random_resized_crop: bool = False
    """Crop a random area and aspect ratio and resize it to image_size."""
    crop_area: tuple[Probability, Probability] = (0.08, 1.0)
    """Least and greatest share of the area that a random resized crop takes."""
    crop_aspect_ratio: tuple[float, float] = (3 / 4, 4 / 3)
    """Least and greatest width to height ratio that a random resized crop takes."""
    auto_augment: str | None = None
    """A policy in timm's notation: "original-mstd0.5", "rand-m9-mstd0.5", ...; streamed data only."""
    random_erasing: Probability = 0.0
    """Probability of blanking a random rectangle."""
    mixup_alpha: NotNegative = 0.0
    """Beta parameter of mixup; 0 for none. Mixed within a replica's batch."""
    mixup_probability: Probability = 0.0
    """Probability that a replica's batch is mixed by mixup."""
    cutmix_alpha: NotNegative = 0.0
    """Beta parameter of cutmix; 0 for none."""
    cutmix_probability: Probability = 0.0
    """Probability that a replica's batch is mixed by cutmix."""
    eval_resize: PositiveInt | None = None
    """Shorter side in pixels that validation images are resized to before the centre crop; unset resizes nothing."""

    @model_validator(mode="after")
    def _mixing_shares_one_draw(self) -> AugmentRecipe:
        if self.mixup_probability + self.cutmix_probability > 1:
            raise ValueError(
                "mixup_probability + cutmix_probability must be at most 1: a batch is mixed one way or the other"
            )
        if self.mixup_probability > 0 and self.mixup_alpha == 0:
            raise ValueError("mixup_probability is above 0, so mixup_alpha must be above 0 too")
        if self.cutmix_probability > 0 and self.cutmix_alpha == 0:
            raise ValueError("cutmix_probability is above 0, so cutmix_alpha must be above 0 too")
        if len(self.mean) != len(self.std) or any(s <= 0 for s in self.std):
            raise ValueError("mean and std need one value a channel each, and every std must be above 0")
        if self.crop_area[0] > self.crop_area[1] or self.crop_aspect_ratio[0] > self.crop_aspect_ratio[1]:
            raise ValueError("crop_area and crop_aspect_ratio are (least, greatest)")
        return self


class OptimizerRecipe(Section):
    """The update rule. The learning rate belongs to `learning_rate_global_batch_size`."""

    name: Literal["sgd", "rmsprop", "adamw", "lars", "lamb"]
    """sgd, rmsprop and adamw as torch has them; lars and lamb for large batches, as timm has them."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Peak learning rate at `learning_rate_global_batch_size`; scaled linearly to another global batch."""
    learning_rate_global_batch_size: PositiveInt | None = None
    """Global batch the rate was chosen for; unset takes the recipe file's own global batch."""
    scale_learning_rate: bool = True
    """Scale the rate linearly when the global batch is not that one; false refuses the scaling."""
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """sgd, rmsprop and lars: share of the last update that goes into this one."""
    nesterov: bool = False
    """sgd and lars: look ahead along the momentum. Needs momentum above 0."""
    weight_decay: NotNegative = 0.0
    """Pull of the weights towards 0; added to the gradient, but adamw and lamb apply it apart from the gradient."""
    weight_decay_on_norms_and_biases: bool = True
    """Decay one-dimensional parameters (norms, biases) too."""
    alpha: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """RMSprop's smoothing of squared gradients."""
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]] = (0.9, 0.999)
    """AdamW's and LAMB's averaging of gradients and squared gradients."""
    eps: Annotated[float, Field(gt=0)] = 1e-8
    """Term added to a denominator, outside the square root; sgd has none."""
    trust_coefficient: Annotated[float, Field(gt=0)] = 0.001
    """LARS's ratio of update norm to weight norm."""
    max_grad_norm: Annotated[float, Field(gt=0)] | None = None
    """Clip the global gradient norm to this; unset for no clipping."""

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> OptimizerRecipe:
        if self.nesterov and (self.momentum == 0 or self.name not in ("sgd", "lars")):
            raise ValueError("nesterov looks ahead along the momentum of sgd or lars, so momentum must be above 0")
        return self


class ScheduleRecipe(Section):
    """The learning rate as a pure function of optimizer steps taken."""

    name: Literal["constant", "step", "exponential", "cosine"] = "constant"
    """What the rate does after warm-up."""
    lr_warmup: Duration = DurationValue(count=0, unit="epochs")
    """Linear rise from `lr_warmup_start_factor` of the rate to the rate."""
    lr_warmup_start_factor: Probability = 0.001
    """Share of the rate that warm-up starts from."""
    milestones: tuple[Duration, ...] = ()
    """step: where the rate is multiplied by gamma."""
    gamma: Annotated[float, Field(gt=0, le=1)] = 0.1
    """step and exponential: the factor."""
    period: Duration = DurationValue(count=1, unit="epochs")
    """exponential: the rate is multiplied by gamma once every period."""
    final_factor: Probability = 0.0
    """cosine: the last rate as a share of the peak."""

    @model_validator(mode="after")
    def _fields_fit_the_name(self) -> ScheduleRecipe:
        if (self.name == "step") != bool(self.milestones):
            raise ValueError("milestones belong to the step schedule, and it needs at least one")
        if self.period.count == 0:
            raise ValueError("period must be above 0")
        return self


class LossRecipe(Section):
    """Cross entropy and its variations."""

    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of each target that is spread evenly over all classes."""


class PrecisionRecipe(Section):
    """How numbers are stored while training; weights and optimizer state stay fp32."""

    compute: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Type of matrix products and activations. apex's O0 is fp32; O1 and O2 are fp16 (see `precision_from_apex_level`)."""
    loss_scale: Annotated[float, Field(gt=0)] | Literal["dynamic"] = "dynamic"
    """fp16 only: a fixed scale, or one that halves at overflow and doubles after `loss_scale_growth_interval` good steps."""
    initial_loss_scale: Annotated[float, Field(gt=0)] = 65536.0
    """Where a dynamic scale starts."""
    loss_scale_growth_interval: PositiveInt = 2000
    """Good steps in a row after which a dynamic scale doubles."""


class ReductionRecipe(Section):
    """How gradients become one."""

    name: Literal["exact", "fast"] = "exact"
    """exact: one fixed binary tree over replicas, the same bits on any number of devices; fast: DDP's all-reduce."""
    bucket_mib: Annotated[float, Field(gt=0)] = 25.0
    """Gradients are exchanged in pieces of about this size while backward still runs."""
    compress: Literal["none", "bf16"] = "none"
    """fast only: send gradients as bf16."""


class EmaRecipe(Section):
    """An exponential moving average of the weights, evaluated and saved beside them."""

    decay: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of the average that stays at each update, for example 0.9999; unset keeps no average."""


class EvaluateRecipe(Section):
    """When and how the validation set is counted."""

    every: Duration = DurationValue(count=1, unit="epochs")
    """How often, and after the last step; "0 steps" for never."""
    per_device_batch_size: PositiveInt = 250
    """Validation images a device takes at once; no result depends on the number of devices."""


class CheckpointRecipe(Section):
    """When checkpoints are written, and how many stay."""

    every: Duration = DurationValue(count=1, unit="epochs")
    """How often, and after the last step; "0 steps" for the last step alone. A new best is saved besides."""
    keep: PositiveInt = 3
    """Newest numbered checkpoints kept; `best` and `last` are kept besides."""


class ReferenceRecipe(Section):
    """What the recipe is known to reach, and who says so."""

    top1_accuracy: Probability | None = None
    """Share of the validation images, in [0, 1]; unset where nobody has published one."""
    source: str = ""
    """Who measured it, and on what."""


class Recipe(Section):
    """What is asked for. `global_batch_size = replicas x per_replica_batch_size`."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name of its run folders: letters, digits, dot, dash and underscore."""
    description: str = ""
    """One line for `unisono recipes`."""
    replicas: PositiveInt = 8
    """The cards its author had in mind; ranks share them out."""
    per_replica_batch_size: PositiveInt
    """Images of one replica in one step."""
    train_for: Duration
    """Length of the run: "200 epochs", "5000 steps" or "1000000 images"."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Start of every random number: weights, order, augmentation, dropout."""
    non_finite_limit: PositiveInt = 20
    """Steps in a row with a loss or gradient that is not finite before the run ends (fp16 overflow skips count too)."""
    model: ModelRecipe
    data: DataRecipe
    augment: AugmentRecipe = AugmentRecipe()
    optimizer: OptimizerRecipe
    schedule: ScheduleRecipe = ScheduleRecipe()
    loss: LossRecipe = LossRecipe()
    precision: PrecisionRecipe = PrecisionRecipe()
    reduction: ReductionRecipe = ReductionRecipe()
    ema: EmaRecipe = EmaRecipe()
    evaluate: EvaluateRecipe = EvaluateRecipe()
    checkpoint: CheckpointRecipe = CheckpointRecipe()
    reference: ReferenceRecipe = ReferenceRecipe()

    @property
    def global_batch_size(self) -> int:
        """Images in one optimizer step."""
        return self.replicas * self.per_replica_batch_size


def precision_from_apex_level(level: str) -> PrecisionRecipe:
    """apex's opt levels in our words: O0 fp32, O1 fp16 with a dynamic scale, O2 fp16 with the model zoo's fixed 1024.

    apex's O2 also stores the model in fp16 beside fp32 master weights; here weights are fp32 throughout, which is
    what those master weights were for.

    Raises:
        ValueError: another level.
    """
    levels = {
        "O0": PrecisionRecipe(compute="fp32"),
        "O1": PrecisionRecipe(compute="fp16", loss_scale="dynamic"),
        "O2": PrecisionRecipe(compute="fp16", loss_scale=1024.0),
    }
    if level not in levels:
        raise ValueError(f"{level!r} is none of {', '.join(levels)}")
    return levels[level]
