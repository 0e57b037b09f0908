"""Which rank a process is, under every launcher of the field."""

from __future__ import annotations

import pytest

from unisono.errors import UserError
from unisono.job.world import World, first_slurm_node, read_world


def test_no_launcher_means_no_world() -> None:
    assert read_world({"PATH": "/bin", "ASCEND_DEVICE_ID": "3"}) is None


def test_torchruns_variables_name_the_rank() -> None:
    env = {
        "RANK": "5",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "4",
        "GROUP_RANK": "1",
        "MASTER_ADDR": "a",
        "MASTER_PORT": "1",
    }
    assert read_world(env) == World(
        rank=5, world_size=8, local_rank=1, local_world_size=4, node_rank=1, master_addr="a", master_port=1, launcher="torchrun"
    )


def test_sruns_variables_name_the_rank_and_one_port_for_the_job() -> None:
    env = {
        "SLURM_PROCID": "9",
        "SLURM_NTASKS": "16",
        "SLURM_LOCALID": "1",
        "SLURM_NODEID": "1",
        "SLURM_JOB_ID": "123456",
        "SLURM_STEP_NODELIST": "npu[03-04]",
        "SLURM_STEP_TASKS_PER_NODE": "8(x2)",
    }
    world = read_world(env)
    assert world is not None
    assert (world.rank, world.world_size, world.local_rank, world.local_world_size, world.node_rank) == (9, 16, 1, 8, 1)
    assert (world.master_addr, world.launcher) == ("npu03", "slurm")
    assert read_world({**env, "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}).master_port == world.master_port  # type: ignore[union-attr]  # set above


def test_an_interactive_shell_of_an_allocation_is_no_rank() -> None:
    assert read_world({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_LOCALID": "0"}) is None


@pytest.mark.parametrize(
    ("env", "launcher"),
    [
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, "openmpi"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1"}, "mpi"),
        ({"RANK_ID": "1", "RANK_SIZE": "2", "ASCEND_DEVICE_ID": "1"}, "ascend"),
    ],
)
def test_mpis_and_the_model_zoos_variables_name_the_rank(env: dict[str, str], launcher: str) -> None:
    world = read_world(env)
    assert world is not None
    assert (world.rank, world.world_size, world.local_rank, world.launcher) == (1, 2, 1, launcher)


@pytest.mark.parametrize("missing", ["RANK", "WORLD_SIZE", "LOCAL_RANK"])
def test_half_set_rank_variables_are_refused_by_name(missing: str) -> None:
    env = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    del env[missing]
    with pytest.raises(UserError) as caught:
        read_world(env)
    assert caught.value.code == "J201"
    assert missing in caught.value.what


@pytest.mark.parametrize(("name", "value"), [("RANK", "x"), ("WORLD_SIZE", "two"), ("RANK", "2"), ("RANK", "-1")])
def test_rank_variables_that_are_no_rank_are_refused(name: str, value: str) -> None:
    with pytest.raises(UserError) as caught:
        read_world({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", name: value})
    assert caught.value.code == "J202"


@pytest.mark.parametrize(
    ("text", "node"), [("npu[03-05,9],login", "npu03"), ("a1,a2", "a1"), ("single", "single"), ("", ""), ("n[7]", "n7")]
)
def test_the_first_node_of_a_compressed_list(text: str, node: str) -> None:
    assert first_slurm_node(text) == node
