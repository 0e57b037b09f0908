"""Random resized crops to 224 of JPEG photographs on one core: ours against torchvision's usual transforms over Pillow.

    python benchmarks/decode.py FOLDER_OF_PHOTOGRAPHS [--repeats 7] [--json]

Both ways take the same boxes of the same files and end with the pixels that their loader would send: torchvision's with
ToTensor's float32 [3, 224, 224], ours with uint8 [224, 224, 3], which the device turns into floats. `end to end` adds what
is left on each side: stacking, and the floats and normalisation of a batch on the same core. Times are processor time of
this thread, the least of the repeats for each photograph, the two ways in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision import transforms
from torchvision.transforms import functional

from unisono.data import jpeg
from unisono.data.augment import DeviceAugment
from unisono.data.decode import Photograph, crop_resized, random_box
from unisono.data.order import sample_uniforms
from unisono.recipe.schema import AugmentRecipe

SIZE = 224
RECIPE = AugmentRecipe(random_resized_crop=True)
Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class Answer:
    """What was measured, a photograph's mean each."""

    photographs: int
    ours_ms: float
    torchvision_ms: float
    ratio: float
    """torchvision_ms / ours_ms."""
    ratio_of_photographs: tuple[float, float, float]
    """Tenth, fiftieth and ninetieth percentile of single photographs' ratios."""
    entropy_ms: float
    """Decoding at an eighth of the size, which reads the whole entropy code and does little else: no way of decoding
    to the last line is faster."""
    end_to_end_ratio: float
    mean_difference: float
    """Of pixels, of 255."""
    fast_decoder: bool
    versions: str


def box_of(index: int, raw: bytes) -> Box:
    """The box that training takes of this photograph in epoch 0."""
    return random_box(Photograph(raw).size, RECIPE, sample_uniforms(0, 0, np.array([index]), 48)[0][8:])


def usual(raw_path: Path, box: Box) -> torch.Tensor:
    """RandomResizedCrop's crop and resize, and ToTensor."""
    left, upper, wide, tall = box
    image = Image.open(raw_path).convert("RGB")
    return functional.to_tensor(functional.resized_crop(image, upper, left, tall, wide, [SIZE, SIZE]))


def ours(path: Path, box: Box) -> np.ndarray:
    """As loader processes do it."""
    return crop_resized(Photograph(path.read_bytes()), box, SIZE)


def least_ms(ways: list[Callable[[], object]], repeats: int) -> list[float]:
    """Each way's least processor time, in turn."""
    best = [float("inf")] * len(ways)
    for _ in range(repeats):
        for place, way in enumerate(ways):
            started = time.thread_time()
            way()
            best[place] = min(best[place], time.thread_time() - started)
    return [seconds * 1e3 for seconds in best]


def end_to_end(paths: list[Path], boxes: list[Box], repeats: int) -> float:
    """Ratio for a batch that is stacked, float and normalised at the end, all on this core."""
    augment = DeviceAugment(RECIPE, channels=3, seed=0, device=torch.device("cpu"), channels_last=True)
    normalise = transforms.Normalize(RECIPE.mean, RECIPE.std)

    def batch_of_ours() -> torch.Tensor:
        images = np.empty((len(paths), SIZE, SIZE, 3), np.uint8)
        for place, (path, box) in enumerate(zip(paths, boxes, strict=True)):
            images[place] = ours(path, box)
        return augment.normalise(torch.from_numpy(images).permute(0, 3, 1, 2))

    def usual_batch() -> torch.Tensor:
        return torch.stack([normalise(usual(path, box)) for path, box in zip(paths, boxes, strict=True)])

    mine, theirs = least_ms([batch_of_ours, usual_batch], repeats)
    return theirs / mine


def measure(folder: Path, repeats: int, most: int = 200) -> Answer:
    """Both ways over the photographs of a folder."""
    torch.set_num_threads(1)
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in (".jpg", ".jpeg")][:most]
    if not paths:
        raise SystemExit(f"no .jpg or .jpeg below {folder}")
    totals, ratios, differences, boxes = np.zeros(3), [], [], []
    for index, path in enumerate(paths):
        raw = path.read_bytes()
        box, frame = box_of(index, raw), jpeg.upright_frame(raw)
        boxes.append(box)

        def eighth(path: Path = path, raw: bytes = raw, frame: jpeg.Frame | None = frame) -> object:
            if frame is None:
                return Image.open(path).convert("RGB")
            return jpeg.decode(raw, frame, bottom=frame.height, factor=8)

        times = least_ms([lambda p=path, b=box: ours(p, b), lambda p=path, b=box: usual(p, b), eighth], repeats)
        totals += times
        ratios.append(times[1] / times[0])
        theirs = usual(path, box).mul(255).round().permute(1, 2, 0).numpy()
        differences.append(float(np.abs(ours(path, box).astype(np.float32) - theirs).mean()))
    mine, theirs_ms, entropy = totals / len(paths)
    low, middle, high = (float(value) for value in np.quantile(ratios, [0.1, 0.5, 0.9]))
    return Answer(
        len(paths),
        float(mine),
        float(theirs_ms),
        float(theirs_ms / mine),
        (low, middle, high),
        float(entropy),
        median([end_to_end(paths[:32], boxes[:32], 3) for _ in range(3)]),
        float(np.mean(differences)),
        jpeg.has_fast_decoder(),
        f"torch {torch.__version__}, torchvision {torchvision.__version__}, Pillow {Image.__version__}",
    )


def main() -> int:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--most", type=int, default=200, help="photographs at most")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    answer = measure(arguments.folder, arguments.repeats, arguments.most)
    if arguments.json:
        print(json.dumps(asdict(answer)))
        return 0
    low, middle, high = answer.ratio_of_photographs
    print(f"{answer.photographs} photographs, one core; {answer.versions}")
    print(f"torchvision over Pillow {answer.torchvision_ms:.2f} ms, ours {answer.ours_ms:.2f} ms: {answer.ratio:.2f} x")
    print(f"single photographs: {low:.2f} x (10 %), {middle:.2f} x (50 %), {high:.2f} x (90 %)")
    print(f"reading the whole entropy code alone: {answer.entropy_ms:.2f} ms")
    print(f"stacked and normalised batches of 32: {answer.end_to_end_ratio:.2f} x")
    print(f"same boxes, mean difference of pixels {answer.mean_difference:.3f} of 255")
    return 0


if __name__ == "__main__":
    sys.exit(main())
