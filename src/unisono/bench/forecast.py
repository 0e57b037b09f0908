"""Step time on machines one does not have: the measured step, the gradients, and an alpha-beta model of the links."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unisono.errors import UserError


@dataclass(frozen=True, slots=True)
class Link:
    """A kind of connection: time = latency + bytes / bandwidth."""

    name: str
    latency_us: float
    bandwidth_gb_s: float
    """10^9 bytes a second of one device in one direction."""
    source: str


# Bandwidths as the vendors state them, one direction of one device; latencies are the usual order of such links.
LINKS = {
    "hccs": Link("hccs", 10, 30, "Ascend 910 in one server: 30 GB/s in each direction a link (vendor's white paper)"),
    "roce": Link("roce", 20, 12.5, "100 Gb/s RoCE port of one device"),
    "pcie": Link("pcie", 15, 16, "PCIe 3.0 x16"),
    "nvlink": Link("nvlink", 8, 150, "NVLink 2.0, six links"),
    "loopback": Link("loopback", 60, 1.5, "gloo over TCP in one machine; measure with `unisono bench collectives`"),
}


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is expected on one number of devices."""

    devices: int
    step_time_ms: float
    communication_ms: float
    """Of one step, hidden part included."""
    exposed_ms: float
    """What backward does not hide."""
    efficiency: float
    images_per_second: float


def forecast(
    *,
    step_time_ms: float,
    gradient_bytes: int,
    images: int,
    devices: int,
    inside: Link,
    between: Link,
    devices_a_node: int,
    buckets: int = 4,
    overlap: float = 0.5,
) -> Forecast:
    """The step on `devices` devices, weak scaling.

    A reduction of S bytes over N devices moves 2 (N-1)/N S by each device in 2 log2(N) rounds (halving and doubling):
    time = rounds x latency + bytes / bandwidth, the slowest link deciding where there are several machines. Backward
    takes about two thirds of a step; buckets that are ready before its end hide behind it. Model: Thakur,
    Rabenseifner, Gropp 2005.

    Args:
        step_time_ms: measured on one device.
        images: a device and step.
        overlap: share of the step behind which communication may hide.
    """
    if devices == 1:
        return Forecast(1, step_time_ms, 0.0, 0.0, 1.0, images / step_time_ms * 1e3)
    link = inside if devices <= devices_a_node else between
    rounds = 2 * (devices - 1).bit_length()
    moved = 2 * (devices - 1) / devices * gradient_bytes
    whole_ms = buckets * rounds * link.latency_us / 1e3 + moved / (link.bandwidth_gb_s * 1e9) * 1e3
    last_ms = whole_ms / buckets
    exposed_ms = max(last_ms, whole_ms - overlap * step_time_ms)
    step_ms = step_time_ms + exposed_ms
    return Forecast(devices, step_ms, whole_ms, exposed_ms, step_time_ms / step_ms, devices * images / step_ms * 1e3)


def buckets_of(gradient_bytes: int, bucket_mib: float = 25.0) -> int:
    """How many pieces gradients are reduced in."""
    return max(1, -(-gradient_bytes // int(bucket_mib * 2**20)))


def fit_link(rows: Sequence[dict[str, Any]], devices: int, collective: str = "exact sum") -> Link:
    """The alpha and beta of one collective in `bench collectives`' rows: from its smallest and its largest size.

    Both figures belong to the forecast's formula: ms = rounds x latency + moved bytes / bandwidth.
    """
    sized = sorted((row for row in rows if row["name"] == collective), key=lambda row: int(row["bytes"]))
    small, large = sized[0], sized[-1]
    rounds, moved = 2 * (devices - 1).bit_length(), 2 * (devices - 1) / devices
    seconds = max(1e-9, (large["ms"] - small["ms"]) / 1e3)
    bandwidth = moved * (large["bytes"] - small["bytes"]) / seconds / 1e9
    return Link("measured", small["ms"] * 1e3 / rounds, bandwidth, f"{collective} on {devices} devices here")


def parse_links(text: str) -> dict[str, Link]:
    """Read "hccs=30:10,roce=12.5:20" (GB/s : microseconds) over the presets; a bare name keeps the preset.

    Raises:
        UserError: B107 another form.
    """
    links = dict(LINKS)
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = re.fullmatch(r"(\w+)(?:=(\d+(?:\.\d+)?)(?::(\d+(?:\.\d+)?))?)?", part)
        if (
            match is None
            or (match[2] is None and match[1] not in links)
            or (match[2] is not None and float(match[2]) == 0)
        ):
            raise UserError(
                "B107",
                f"--link {text}",
                f"{part!r} is not NAME=GB/s:microseconds",
                "write for example --link hccs=30:10,roce=12.5:20",
            )
        if match[2] is not None:
            links[match[1]] = Link(match[1], float(match[3] or 20), float(match[2]), "given on the command line")
    return links
