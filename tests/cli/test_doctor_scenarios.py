"""A whole machine made up: packages, CANN, driver, chips, links. What is planted in it is the first thing that doctor names."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unisono.cli.main import app
from unisono.doctor import environment, network, versions

CHIP = (
    "| {card}     910B3               | {health:<13} | 91.2        {temperature}                0    / 0             |\n"
    "| 0                         | 0000:C{card}:00.0  | 0           0    / 0          {used} / 65536         |"
)
PROCESS = "| 1       0                 | 4711          | python                   | 30211                    |"


class Server:
    """Two healthy 910B3 with a fitting set of software; a test spoils one thing."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        self.packages = {"torch": "2.7.1", "torchvision": "0.22.1", "torch-npu": "2.7.1"}
        self.health, self.temperature, self.used = ["OK", "OK"], 40, 3318
        self.processes = ""
        self.link, self.tls, self.ecc = ["UP", "UP"], [0, 0], [0, 0]
        (folder / "bin").mkdir()
        monkeypatch.setenv("PATH", str(folder / "bin"))
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_HOME_PATH"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(versions, "_version_of", self.packages.get)
        monkeypatch.setattr(versions, "_TOOLKITS", ())
        monkeypatch.setattr(versions, "_DRIVER", folder / "driver.info")
        monkeypatch.setattr(versions, "_FIRMWARE", folder / "firmware.info")
        # The row of the table whose Python is this one's is not asked for here.
        rows = [{**row, "python": ""} for row in versions.table()]
        monkeypatch.setattr(versions, "table", lambda: rows)
        monkeypatch.setattr(environment, "_SET_ENV", (str(folder / "cann" / "set_env.sh"),))
        monkeypatch.setattr(environment, "_is_free", lambda _: True)
        conf = folder / "hccn.conf"
        conf.write_text("address_0=192.0.2.10\nnetmask_0=255.255.255.0\naddress_1=192.0.2.11\nnetmask_1=255.255.255.0\n")
        monkeypatch.setattr(network.check_network, "__defaults__", ((), conf))
        monkeypatch.setattr(network, "_own_name", lambda: network.ok("H160", "this machine's name resolves"))
        self.cann = next(row["cann"] for row in rows if row["torch_npu"] == "2.7.1")
        self.firmware = "7.1.0.11.220"

    def install(self) -> None:
        """Write what the tools and the files say."""
        place = self.folder / "cann" / "aarch64-linux"
        place.mkdir(parents=True)
        (place.parent / "set_env.sh").touch()
        (place / "ascend_toolkit_install.info").write_text(f"version={self.cann}\n")
        self.monkeypatch.setenv("ASCEND_TOOLKIT_HOME", str(place.parent))
        (self.folder / "driver.info").write_text("Version=24.1.rc1\ncompatible_version_fw=[7.0.0,7.2.99]\n")
        (self.folder / "firmware.info").write_text(f"Version={self.firmware}\n")
        chips = [
            CHIP.format(card=card, health=health, temperature=self.temperature, used=self.used)
            for card, health in enumerate(self.health)
        ]
        table = "\n".join(["| npu-smi 24.1.rc1             Version: 24.1.rc1                    |", *chips, self.processes])
        ecc = {f"-i {card} -t ecc": f"HBM Double Bit Error Count : {count}" for card, count in enumerate(self.ecc)}
        self._tool("npu-smi", ecc, table)
        link = {f"-i {card} -link -g": f"link status: {state}" for card, state in enumerate(self.link)}
        tls = {f"-i {card} -tls -g": f"dev_id:{card}, tls switch[{switch}](0:disable)" for card, switch in enumerate(self.tls)}
        self._tool("hccn_tool", {**link, **tls}, "")

    def _tool(self, name: str, answers: dict[str, str], otherwise: str) -> None:
        cases = "".join(f"*{shlex.quote(part)}*) printf '%s\\n' {shlex.quote(text)} ;;\n" for part, text in answers.items())
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\ncase \"$*\" in\n{cases}*) printf '%s\\n' {shlex.quote(otherwise)} ;;\nesac\n")
        path.chmod(0o755)

    def examine(self, *options: str) -> tuple[int, str]:
        arguments = ["doctor", "--only", "versions,environment,devices,network", *options]
        done = CliRunner().invoke(app, arguments)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.stdout

    def findings(self) -> list[dict[str, str]]:
        _, text = self.examine("--json")
        return [finding for theme in json.loads(text).values() for finding in theme]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(tmp_path, monkeypatch)


def test_a_sound_server_has_no_fault(server: Server) -> None:
    server.install()
    assert [(row["code"], row["title"]) for row in server.findings() if row["status"] in ("fail", "unknown")] == []
    code, text = server.examine()
    assert code == 0, text


def _other_torch(server: Server) -> None:
    server.packages.update({"torch": "2.6.0", "torchvision": "0.21.0"})


def _other_torchvision(server: Server) -> None:
    server.packages["torchvision"] = "0.21.0"


def _old_firmware(server: Server) -> None:
    server.firmware = "6.4.0.1"


def _ill_chip(server: Server) -> None:
    server.health[1] = "Critical"


def _broken_memory(server: Server) -> None:
    server.ecc[1] = 4


def _link_down(server: Server) -> None:
    server.link[0] = "DOWN"


def _tls_apart(server: Server) -> None:
    server.tls[1] = 1


@pytest.mark.parametrize(
    ("plant", "code", "evidence", "command"),
    [
        (_other_torch, "H104", "torch 2.7.1", "pip install torch==2.7.1 torch-npu==2.7.1"),
        (_other_torchvision, "H103", "0.22", "pip install torch==2.7.1 'torchvision==0.22.*'"),
        (_old_firmware, "H107", "7.0.0 to 7.2.99", ""),
        (_ill_chip, "H131", "NPU 1 chip 0: Critical", "npu-smi info -t health -i 1"),
        (_broken_memory, "H135", "NPU 1: 4 errors", "npu-smi info -t ecc -i 1"),
        (_link_down, "H162", "cards [0]", "hccn_tool -i 0 -link_stat -g"),
        (_tls_apart, "H163", "card 1: on", "for i in 0 1; do hccn_tool -i $i -tls -s enable 0; done"),
    ],
)
def test_what_is_planted_is_the_only_fault_named_with_its_remedy(
    server: Server, plant: Callable[[Server], None], code: str, evidence: str, command: str
) -> None:
    plant(server)
    server.install()
    faults = [row for row in server.findings() if row["status"] == "fail"]
    assert [row["code"] for row in faults] == [code]
    assert evidence in faults[0]["evidence"]
    assert faults[0]["command"] == command
    exit_code, _ = server.examine()
    assert exit_code == 1
    _, to_type = server.examine("--fix")
    assert command in to_type


def _old_cann(server: Server) -> None:
    server.cann = "7.0.0"


def _hot(server: Server) -> None:
    server.temperature = 96


def _held(server: Server) -> None:
    server.processes, server.used = PROCESS, 33529


@pytest.mark.parametrize(
    ("plant", "code", "evidence"),
    [(_old_cann, "H105", "tested with CANN"), (_hot, "H132", "96 C"), (_held, "H133", "python (pid 4711) on NPU 1")],
)
def test_what_does_not_stop_training_is_a_warning(
    server: Server, plant: Callable[[Server], None], code: str, evidence: str
) -> None:
    plant(server)
    server.install()
    warned = {row["code"]: row["evidence"] for row in server.findings() if row["status"] == "warn"}
    assert evidence in warned[code]
    assert [row["code"] for row in server.findings() if row["status"] == "fail"] == []


def test_a_shell_in_which_cann_was_not_sourced_is_told_the_line(server: Server) -> None:
    server.install()
    server.monkeypatch.delenv("ASCEND_TOOLKIT_HOME")
    server.monkeypatch.setattr(versions, "_TOOLKITS", (str(server.folder / "cann"),))
    _, text = server.examine("--fix")
    assert f"source {server.folder}/cann/set_env.sh" in text
    assert [row["code"] for row in server.findings() if row["status"] == "fail"] == ["H110"]
