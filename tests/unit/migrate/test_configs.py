"""Scripts, configurations and requirement lists: found by line, changed on request."""

from __future__ import annotations

from unisono.migrate.configs import is_config, scan_text
from unisono.migrate.findings import Options, Target

SCRIPT = """#!/bin/bash
# CUDA_VISIBLE_DEVICES=0 was here
export CUDA_VISIBLE_DEVICES=0,1
export NCCL_DEBUG=INFO
nvidia-smi
python -m torch.distributed.launch --nproc_per_node=2 train.py --dist-backend nccl --device cuda  # over nccl
"""


def found(text: str, name: str, **options: object) -> list[tuple[int, str]]:
    return [(f.line, f.code) for f in scan_text(text, Options(**options), name).findings]  # type: ignore[arg-type]  # keywords of Options


def test_a_shell_script_is_reported_by_line_and_not_changed() -> None:
    result = scan_text(SCRIPT, Options(), "run.sh")
    assert not result.changed
    assert found(SCRIPT, "run.sh") == [(3, "K101"), (4, "K102"), (5, "K105"), (6, "K103"), (6, "K104"), (6, "K106")]


def test_a_shell_script_is_changed_on_request_and_then_stays() -> None:
    after = scan_text(SCRIPT, Options(configs=True), "run.sh").after
    assert "export ASCEND_RT_VISIBLE_DEVICES=0,1\n" in after
    assert "torchrun --nproc_per_node=2 train.py --dist-backend hccl --device npu  # over nccl\n" in after
    assert "# CUDA_VISIBLE_DEVICES=0 was here\n" in after
    assert scan_text(after, Options(configs=True), "run.sh").after == after


def test_the_portable_target_only_reports() -> None:
    assert not scan_text(SCRIPT, Options(configs=True, target=Target.PORTABLE), "run.sh").changed


def test_yaml_and_json_devices_and_backends_are_found_by_their_keys() -> None:
    text = "device: cuda:0\nbackend: nccl\nname: cuda_run\n# device: cuda\n"
    assert found(text, "a.yaml") == [(1, "K201"), (2, "K201")]
    assert (
        scan_text(text, Options(configs=True), "a.yaml").after
        == "device: npu:0\nbackend: hccl\nname: cuda_run\n# device: cuda\n"
    )
    assert found('{"device": "cuda", "title": "cuda"}', "a.json") == [(1, "K201")]


def test_requirements_name_cuda_packages_and_cuda_builds() -> None:
    text = "torch==2.5.1+cu121\nnvidia-dali-cuda120\nnumpy\napex\n--extra-index-url https://example.org/whl/cu121\n"
    assert found(text, "requirements.txt") == [(1, "K302"), (2, "K301"), (4, "K301"), (5, "K302")]


def test_a_notebook_and_cuda_sources_are_reported() -> None:
    assert found('{"source": ["x = x.cuda()\\n"]}', "a.ipynb") == [(1, "K202")]
    assert found("__global__ void f() {}", "kernel.cu") == [(1, "K401")]


def test_a_container_file_names_its_cuda_image() -> None:
    assert found("FROM nvidia/cuda:12.1-base\nRUN pip install cupy-cuda12x\n", "Dockerfile")[0] == (1, "K402")


def test_other_files_are_not_scanned() -> None:
    from pathlib import PurePath

    assert is_config(PurePath("a/run.sh"))
    assert is_config(PurePath("requirements-dev.txt"))
    assert not is_config(PurePath("README.md"))
    assert not is_config(PurePath("notes.txt"))
