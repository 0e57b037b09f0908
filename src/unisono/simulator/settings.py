"""What is simulated, as one frozen record that travels to child processes in environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unisono.errors import UserError
from unisono.simulator.chips import DEFAULT_CHIP, Chip, chip_named
from unisono.simulator.fault import SimulatedFault, parse_fault

DEVICES_VARIABLE = "UNISONO_SIM_DEVICES"
CHIP_VARIABLE = "UNISONO_SIM_CHIP"
MEMORY_VARIABLE = "UNISONO_SIM_MEMORY"
FAULTS_VARIABLE = "UNISONO_SIM_FAULTS"

MOST_DEVICES = 64
_UNITS = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_LEAST_MEMORY = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatorSettings:
    """A server of simulated NPUs."""

    devices: int = 8
    chip: str = DEFAULT_CHIP
    memory_bytes: int = 0
    """Memory of each device; 0 means the chip's own."""
    faults: tuple[str, ...] = ()
    """Planned faults, as written by the user and already checked."""

    @property
    def rules(self) -> Chip:
        """The chip's rules, with the memory asked for."""
        chip = chip_named(self.chip)
        return replace(chip, memory_bytes=self.memory_bytes or chip.memory_bytes)

    def planned_faults(self) -> list[SimulatedFault]:
        """The faults, parsed."""
        return [parse_fault(text) for text in self.faults]

    def to_environment(self) -> dict[str, str]:
        """Variables that tell a child process to simulate the same."""
        return {
            DEVICES_VARIABLE: str(self.devices),
            CHIP_VARIABLE: self.chip,
            MEMORY_VARIABLE: str(self.memory_bytes),
            FAULTS_VARIABLE: ";".join(self.faults),
        }


def make_settings(
    devices: int, chip: str | None = None, memory: str | int | None = None, faults: Sequence[str] = ()
) -> SimulatorSettings:
    """Check what the user asked for.

    Raises:
        UserError: S103 number of devices, S104 chip, S105 memory, S106 fault.
    """
    if not 1 <= devices <= MOST_DEVICES:
        raise UserError(
            "S103",
            f"{devices} simulated NPUs",
            f"a server has from 1 to {MOST_DEVICES}",
            f"use --devices with a number from 1 to {MOST_DEVICES}",
        )
    settings = SimulatorSettings(
        devices=devices,
        chip=(chip or DEFAULT_CHIP).upper(),
        memory_bytes=parse_memory(memory) if memory else 0,
        faults=tuple(faults),
    )
    _ = settings.rules
    settings.planned_faults()
    return settings


def settings_from(env: Mapping[str, str]) -> SimulatorSettings | None:
    """The settings that a parent process left in the environment; None when it left none.

    Raises:
        UserError: S103 to S106 the variables were edited to something impossible.
    """
    devices = env.get(DEVICES_VARIABLE)
    if not devices:
        return None
    return make_settings(
        int(devices) if devices.isdigit() else 0,
        env.get(CHIP_VARIABLE),
        env.get(MEMORY_VARIABLE, "0") if env.get(MEMORY_VARIABLE, "0") != "0" else None,
        [text for text in env.get(FAULTS_VARIABLE, "").split(";") if text],
    )


def parse_memory(text: str | int) -> int:
    """Bytes of "32GiB", "512 MiB", "8GB" or a plain number.

    Raises:
        UserError: S105 another form, or less than 1 MiB.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(text))
    unit = _UNITS.get(match.group(2).lower()) if match else None
    amount = int(float(match.group(1)) * unit) if match and unit else 0
    if amount < _LEAST_MEMORY:
        raise UserError(
            "S105",
            f"memory {text}",
            "it is a number with a unit such as MiB or GiB, 1 MiB at least",
            "write for example --memory 32GiB",
        )
    return amount
