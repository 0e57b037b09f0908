"""Versions and environment variables: each planted fault is named first, with the command that mends it."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.doctor import environment, versions
from unisono.doctor.environment import check_environment
from unisono.doctor.finding import Finding

DRIVER = "Version=24.1.rc1\nInnerversion=V100\ncompatible_version_fw=[7.0.0,7.2.99]\n"


def by_code(findings: Iterator[Finding]) -> dict[str, Finding]:
    return {finding.code: finding for finding in findings}


class Machine:
    """Installed packages, CANN and driver files that a test makes up."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.packages: dict[str, str] = {"torch": "2.7.1", "torchvision": "0.22.1"}
        self.folder = folder
        monkeypatch.setattr(versions, "_version_of", self.packages.get)
        monkeypatch.setattr(versions, "_TOOLKITS", (str(folder / "cann"),))
        monkeypatch.setattr(versions, "_DRIVER", folder / "driver.info")
        monkeypatch.setattr(versions, "_FIRMWARE", folder / "firmware.info")
        for name in ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH", "PYTORCH_NPU_ALLOC_CONF"):
            monkeypatch.delenv(name, raising=False)

    def cann(self, version: str) -> None:
        place = self.folder / "cann" / "aarch64-linux"
        place.mkdir(parents=True)
        (place / "ascend_toolkit_install.info").write_text(f"package_name=Ascend-cann-toolkit\nversion={version}\n")

    def npu(self, driver: str = DRIVER, firmware: str = "Version=7.1.0.11.220\n") -> None:
        (self.folder / "driver.info").write_text(driver)
        (self.folder / "firmware.info").write_text(firmware)

    def findings(self) -> dict[str, Finding]:
        return by_code(versions.check_versions())


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_a_pair_of_the_table_is_ok(machine: Machine) -> None:
    machine.packages["torch-npu"] = "2.7.1.post2"
    machine.cann("8.5.0")
    machine.npu()
    found = machine.findings()
    assert [found[code].status for code in ("H105", "H106", "H107")] == ["ok", "ok", "ok"]
    assert found["H104"].status == ("ok" if sys.version_info < (3, 14) else "warn")


def test_torch_npu_of_another_torch_fails_and_names_the_pair(machine: Machine) -> None:
    machine.packages |= {"torch": "2.8.0", "torch-npu": "2.7.1.post2"}
    assert machine.findings()["H104"].command == "pip install torch==2.7.1 torch-npu==2.7.1.post2"


def test_a_cann_of_another_release_warns_with_the_right_one(machine: Machine) -> None:
    machine.packages["torch-npu"] = "2.7.1.post2"
    machine.cann("8.3.RC1")
    found = machine.findings()["H105"]
    assert (found.status, "8.5.0" in found.remedy) == ("warn", True)


def test_what_the_table_does_not_hold_is_called_unknown(machine: Machine) -> None:
    machine.packages |= {"torch": "2.13.0", "torch-npu": "2.13.0.post9"}
    machine.cann("9.9.0")
    assert machine.findings()["H105"].status == "unknown"


def test_no_cann_beside_torch_npu_fails(machine: Machine) -> None:
    machine.packages["torch-npu"] = "2.7.1.post2"
    assert machine.findings()["H105"].status == "fail"


@pytest.mark.parametrize(
    ("firmware", "status"), [("7.2.99.1", "ok"), ("7.3.0", "fail"), ("6.4.12", "fail"), ("10.0.0", "fail")]
)
def test_firmware_is_compared_as_numbers(machine: Machine, firmware: str, status: str) -> None:
    machine.npu(firmware=f"Version={firmware}\n")
    assert machine.findings()["H107"].status == status


def test_an_option_that_needs_a_newer_driver_fails(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.npu()
    monkeypatch.setenv("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True")
    assert "H108" not in machine.findings()
    monkeypatch.setenv("PYTORCH_NPU_ALLOC_CONF", "page_size:1g")
    assert machine.findings()["H108"].status == "fail"


def test_a_torchvision_of_another_torch_fails(machine: Machine) -> None:
    machine.packages["torchvision"] = "0.23.0"
    assert machine.findings()["H103"].status == "fail"


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("8.3.RC1", "8.3.rc1.alpha001", True),
        ("8.0.RC2", "8.0.RC3", False),
        ("8.0.RC3", "8.0.0", False),
        ("8.5.0", "8.5.1", True),
        ("9.1.0", "8.1.0", False),
    ],
)
def test_releases_and_their_candidates(a: str, b: str, same: bool) -> None:
    assert versions.same_release(a, b) is same


def test_an_old_toolkit_is_read_from_its_version_cfg(tmp_path: Path) -> None:
    (tmp_path / "version.cfg").write_text("# version: 1.0\ntoolkit_running_version=[7.3.0.1.231:8.0.RC2]\n")
    assert versions.cann_version([str(tmp_path)]) == "8.0.RC2"


@given(st.text(), st.text())
def test_no_version_text_makes_a_comparison_fall(a: str, b: str) -> None:
    assert versions.same_release(a, a)
    assert versions.same_release(a, b) is versions.same_release(b, a)


@given(st.binary())
def test_no_bytes_make_a_version_file_fall(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    for name in ("version.cfg", "version.info"):
        (folder / name).write_bytes(content)
    versions.cann_version([str(folder)])
    versions.read_version_info(folder / "version.info")


@pytest.mark.parametrize(
    ("env", "code", "status"),
    [
        ({"HCCL_EXEC_TIMEOUT": "100"}, "H111", "warn"),
        ({"HCCL_EXEC_TIMEOUT": "3600"}, "H111", "warn"),
        ({"HCCL_EXEC_TIMEOUT": "3600", "HCCL_EVENT_TIMEOUT": "3700"}, "H111", "ok"),
        ({"HCCL_CONNECT_TIMEOUT": "10"}, "H111", "fail"),
        ({"HCCL_CONNECT_TIMEOUT": "ten"}, "H111", "fail"),
        ({"PYTORCH_NPU_ALLOC_CONF": "a", "PYTORCH_ALLOC_CONF": "b"}, "H112", "fail"),
        ({"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True,max_split_size_mb:64"}, "H112", "fail"),
        ({"HCCL_IF_IP": "192.0.2.1", "HCCL_SOCKET_IFNAME": "lo"}, "H113", "warn"),
        ({"HCCL_SOCKET_IFNAME": "nocard9"}, "H113", "fail"),
        ({"HCCL_IF_BASE_PORT": "70000"}, "H114", "fail"),
        ({"HCCL_IF_BASE_PORT": "²"}, "H114", "fail"),
        ({"ASCEND_LAUNCH_BLOCKING": "1"}, "H115", "warn"),
        ({"ASCEND_GLOBAL_LOG_LEVEL": "0"}, "H116", "warn"),
        ({"HCCL_WHITELIST_DISABLE": "0"}, "H117", "fail"),
        ({"RANK": "0"}, "H118", "fail"),
        ({"MASTER_PORT": "70000"}, "H122", "fail"),
        ({"MASTER_PORT": "port"}, "H122", "fail"),
        ({"NVIDIA_TF32_OVERRIDE": "1"}, "H123", "warn"),
        ({"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}, "H123", "warn"),
        ({"NVIDIA_TF32_OVERRIDE": "0", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}, "H123", "warn"),
        ({"ASCEND_LAUNCH_BLOCKING": "1", "TASK_QUEUE_ENABLE": "2"}, "H119", "warn"),
        ({"INF_NAN_MODE_ENABLE": "1", "INF_NAN_MODE_FORCE_DISABLE": "1"}, "H119", "fail"),
        ({"HCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "eth7"}, "H119", "warn"),
        ({"ASCEND_TOOLKIT_HOME": "/no/such/folder"}, "H110", "fail"),
    ],
)
def test_each_contradiction_is_named(env: dict[str, str], code: str, status: str) -> None:
    finding = by_code(check_environment(env))[code]
    assert finding.status == status
    assert finding.status == "ok" or finding.remedy


def test_an_empty_environment_has_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_SET_ENV", ())
    assert {finding.status for finding in check_environment({})} <= {"ok", "skip"}


def test_a_cann_that_was_not_sourced_gives_the_line_that_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "set_env.sh"
    script.touch()
    monkeypatch.setattr(environment, "_SET_ENV", (str(script),))
    finding = by_code(check_environment({}))["H110"]
    assert (finding.status, finding.command) == ("fail", f"source {script}")


def test_a_taken_port_of_the_base_range_is_named() -> None:
    with socket.socket() as holder:
        holder.bind(("", 0))
        holder.listen(1)
        port = holder.getsockname()[1]
        finding = by_code(check_environment({"HCCL_IF_BASE_PORT": str(min(port, 65520))}))["H114"]
    assert finding.status == "warn"
    assert str(port) in finding.evidence


def test_a_taken_meeting_port_fails_but_not_for_the_ranks_that_meet_there() -> None:
    with socket.socket() as holder:
        holder.bind(("", 0))
        holder.listen(1)
        port = str(holder.getsockname()[1])
        assert by_code(check_environment({"MASTER_PORT": port}))["H122"].status == "fail"
        rank = {"MASTER_PORT": port, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
        assert by_code(check_environment(rank))["H122"].status == "skip"
    assert by_code(check_environment({"MASTER_PORT": port}))["H122"].status == "ok"


def test_hccls_default_ports_are_looked_at_where_cann_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as holder:
        holder.bind(("", 0))
        holder.listen(1)
        port = min(holder.getsockname()[1], 65500)
        monkeypatch.setattr(environment, "_BASE_PORT", port)
        assert by_code(check_environment({}))["H114"].status == "skip"
        finding = by_code(check_environment({"ASCEND_TOOLKIT_HOME": str(tmp_path)}))["H114"]
    assert (finding.status, str(port) in finding.evidence) == ("warn", True)


NAMES = [
    "HCCL_CONNECT_TIMEOUT",
    "HCCL_EXEC_TIMEOUT",
    "HCCL_EVENT_TIMEOUT",
    "HCCL_SOCKET_IFNAME",
    "PYTORCH_NPU_ALLOC_CONF",
    "RANK",
]


@given(st.dictionaries(st.sampled_from(NAMES), st.text()))
def test_no_value_makes_the_environment_check_fall(env: dict[str, str]) -> None:
    assert list(check_environment(env))
