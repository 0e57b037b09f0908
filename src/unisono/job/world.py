"""Which rank this process is, read from the variables of torchrun, Slurm, MPI or the model zoo's scripts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from unisono.errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """One process among `world_size`, each with one device."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1
    node_rank: int = 0
    master_addr: str = "127.0.0.1"
    master_port: int = 0
    launcher: str = "none"
    """Whose variables said so: torchrun, slurm, openmpi, mpi, ascend, or none."""

    @property
    def node_count(self) -> int:
        """Number of machines, when each runs the same number of processes."""
        return max(1, self.world_size // self.local_world_size)


@dataclass(frozen=True, slots=True)
class _Family:
    """The names that one launcher uses; the first two decide whether it is there."""

    launcher: str
    rank: str
    world_size: str
    local_rank: str
    local_world_size: str | None = None
    node_rank: str | None = None


# Sources: torchrun's documentation; srun(1) "OUTPUT ENVIRONMENT VARIABLES"; Open MPI's and Hydra's (MPICH, Intel MPI)
# process variables; the model zoo's shell scripts, which export RANK_ID and RANK_SIZE.
FAMILIES = (
    _Family("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"),
    _Family(
        "openmpi",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "OMPI_COMM_WORLD_NODE_RANK",
    ),
    _Family("mpi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    _Family("slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", None, "SLURM_NODEID"),
    _Family("ascend", "RANK_ID", "RANK_SIZE", "ASCEND_DEVICE_ID"),
)


def read_world(env: Mapping[str, str] | None = None) -> World | None:
    """The world that a launcher announced, or None when no launcher did.

    Args:
        env: the variables to read; None reads the process's own.

    Raises:
        UserError: J201 variables half set, J202 a variable that is no number or out of range.
    """
    env = os.environ if env is None else env
    for family in FAMILIES:
        present = [name for name in (family.rank, family.world_size, family.local_rank) if env.get(name, "") != ""]
        if not present or _is_a_lone_shell(family, env):
            continue
        return _world_of(family, env)
    return None


def _is_a_lone_shell(family: _Family, env: Mapping[str, str]) -> bool:
    """An allocation's interactive shell sets Slurm's variables for one task; that is not a launched rank.

    The model zoo exports RANK_SIZE for a whole script; without RANK_ID no rank was started. ASCEND_DEVICE_ID alone
    only chooses a card.
    """
    if family.launcher == "slurm":
        return env.get("SLURM_NTASKS", "1") == "1" or "SLURM_PROCID" not in env
    return family.launcher == "ascend" and "RANK_ID" not in env


def _world_of(family: _Family, env: Mapping[str, str]) -> World:
    needed = [family.rank, family.world_size]
    missing = [name for name in needed if env.get(name, "") == ""]
    if family.launcher == "torchrun" and env.get(family.local_rank, "") == "" and not missing:
        missing = [family.local_rank] if _int(env, family.world_size) > 1 else []
    if missing:
        present = [
            name for name in (family.rank, family.world_size, family.local_rank) if name not in missing and name in env
        ]
        raise UserError(
            "J201",
            f"rank variables are half set: {', '.join(present)} without {', '.join(missing)}",
            f"a process started by {family.launcher} has all of {', '.join((*needed, family.local_rank))}",
            f"start with `unisono train RECIPE --devices N` or torchrun, or `unset {' '.join(present)}`",
        )
    rank, world_size = _int(env, family.rank), _int(env, family.world_size)
    if not 0 <= rank < world_size:
        raise UserError(
            "J202",
            f"{family.rank}={rank} with {family.world_size}={world_size}",
            "a rank is at least 0 and below the world size",
            "correct the launcher's variables",
        )
    local_rank = _int(env, family.local_rank) if env.get(family.local_rank, "") != "" else rank
    local_size = _local_world_size(family, env, world_size)
    return World(
        rank=rank,
        world_size=world_size,
        local_rank=local_rank,
        local_world_size=local_size,
        node_rank=_int(env, family.node_rank) if family.node_rank and family.node_rank in env else rank // local_size,
        master_addr=_master_addr(family, env),
        master_port=_master_port(family, env),
        launcher=family.launcher,
    )


def _local_world_size(family: _Family, env: Mapping[str, str], world_size: int) -> int:
    if family.local_world_size and env.get(family.local_world_size, "") != "":
        return max(1, _int(env, family.local_world_size))
    if family.launcher == "slurm":
        # "4(x2),3" means four tasks on each of the first two nodes; ours is at SLURM_NODEID.
        counts: list[int] = []
        for count, times in re.findall(
            r"(\d+)(?:\(x(\d+)\))?", env.get("SLURM_STEP_TASKS_PER_NODE", env.get("SLURM_TASKS_PER_NODE", ""))
        ):
            counts += [int(count)] * int(times or 1)
        node = int(env.get("SLURM_NODEID", "0") or 0)
        if node < len(counts):
            return counts[node]
    return world_size


def _master_addr(family: _Family, env: Mapping[str, str]) -> str:
    if env.get("MASTER_ADDR"):
        return env["MASTER_ADDR"]
    if family.launcher == "slurm":
        nodes = env.get("SLURM_STEP_NODELIST", env.get("SLURM_JOB_NODELIST", ""))
        return first_slurm_node(nodes) or env.get("SLURM_LAUNCH_NODE_IPADDR", "")
    return "127.0.0.1"


def _master_port(family: _Family, env: Mapping[str, str]) -> int:
    if env.get("MASTER_PORT"):
        return _int(env, "MASTER_PORT")
    if family.launcher == "slurm":
        # Every rank must come to the same port, and two jobs on one node must not: derive it from the job.
        return 20000 + int(re.sub(r"\D", "", env.get("SLURM_JOB_ID", "0")) or 0) % 20000
    return 29500


def first_slurm_node(node_list: str) -> str:
    """The first host of Slurm's compressed list: "npu[03-05,9],login" -> "npu03"."""
    match = re.match(r"([^,\[]+)(?:\[(\w+))?", node_list)
    if match is None:
        return ""
    return match[1] + (match[2] or "")


def _int(env: Mapping[str, str], name: str) -> int:
    try:
        return int(env[name])
    except ValueError:
        raise UserError(
            "J202",
            f"{name}={env[name]!r} is not a number",
            "launchers set it to a whole number",
            f"correct or unset {name}",
        ) from None
