"""Link and network: the NPUs' own ports, name resolution, the other machines' clocks."""

from __future__ import annotations

import re
import shutil
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from unisono.doctor.commands import run
from unisono.doctor.finding import Finding, fail, ok, skip, unknown, warn
from unisono.doctor.npu_smi import parse_npu_smi

_TOOL_FOLDER = "/usr/local/Ascend/driver/tools"


def check_network(nodes: Sequence[str] = (), conf: Path = Path("/etc/hccn.conf")) -> Iterator[Finding]:
    """H160-H165.

    Args:
        nodes: host names or addresses of the other machines.
        conf: the addresses of the NPUs' own ports.
    """
    yield _own_name()
    chips = parse_npu_smi(run(["npu-smi", "info"], 20).text).chips
    yield from _hccn(sorted({chip.physical_id for chip in chips}), parse_hccn_conf(conf))
    for node in nodes:
        yield _node(node)


def _own_name() -> Finding:
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError as error:
        return warn(
            "H160",
            "this machine's name does not resolve",
            f"{name}: {error}",
            "torchrun and gloo look it up; add it to /etc/hosts",
            f'echo "127.0.0.1 {name}" >> /etc/hosts',
        )
    return ok("H160", "this machine's name resolves", address)


def _hccn(cards: Sequence[int], conf: Mapping[int, str]) -> Iterator[Finding]:
    if not cards:
        yield skip("H161", "the NPUs' network ports", "no NPU here")
        return
    missing = [card for card in cards if card not in conf]
    if missing:
        yield warn(
            "H161",
            "NPUs without an address in /etc/hccn.conf",
            f"cards {missing}",
            "needed for more than one machine: hccn_tool -i N -ip -s address A netmask M",
        )
    else:
        yield ok("H161", f"{len(conf)} NPUs have addresses")
    if len({address.rpartition(".")[0] for address in conf.values()}) > 1 and len(cards) == 8:
        yield unknown(
            "H161",
            "NPUs are in several networks",
            ", ".join(conf.values()),
            "right on a 910A (two rings), else use one",
        )
    yield from _ports(cards)


def _ports(cards: Sequence[int]) -> Iterator[Finding]:
    """Link states and TLS switches, by hccn_tool's words."""
    tool = shutil.which("hccn_tool") or shutil.which("hccn_tool", path=_TOOL_FOLDER)
    if tool is None:
        yield skip("H162", "link states", "no hccn_tool here")
        return
    down, silent, switches = [], {}, {}
    for card in cards:
        answer = run([tool, "-i", str(card), "-link", "-g"]).text
        state = link_state(answer)
        if state == "DOWN":
            down.append(card)
        elif state is None:
            silent[card] = (answer.strip().splitlines() or ["no words"])[0]
        switch = tls_switch(run([tool, "-i", str(card), "-tls", "-g"]).text)
        if switch is not None:
            switches[card] = switch
    if down:
        yield fail(
            "H162",
            "an NPU's network port is down",
            f"cards {down}",
            "check cable, module and switch port",
            f"hccn_tool -i {down[0]} -link_stat -g",
        )
    elif silent:
        yield unknown(
            "H162", "link states are not told", f"card {min(silent)}: {silent[min(silent)]}", "run it as root"
        )
    else:
        yield ok("H162", "all network ports are up")
    yield from _tls(switches)


def _tls(switches: Mapping[int, int]) -> Iterator[Finding]:
    if len(set(switches.values())) > 1:
        numbers = " ".join(map(str, sorted(switches)))
        yield fail(
            "H163",
            "TLS switches differ between NPUs",
            ", ".join(f"card {card}: {'on' if switch else 'off'}" for card, switch in sorted(switches.items())),
            "set them alike on all NPUs of all machines",
            f"for i in {numbers}; do hccn_tool -i $i -tls -s enable 0; done",
        )
    elif switches:
        state = "on" if next(iter(switches.values())) else "off"
        yield ok("H163", f"TLS is {state} on all NPUs", "it must be the same on the other machines")


def link_state(text: str) -> str | None:
    """UP or DOWN of hccn_tool's answer about a link; None for any other words."""
    match = re.search(r"link status:\s*(UP|DOWN)\b", text, re.I)
    return match[1].upper() if match else None


def parse_hccn_conf(path: Path) -> dict[int, str]:
    """card -> address of an hccn.conf; empty when there is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {int(card): address for card, address in re.findall(r"^address_([0-9]{1,4})=(\S+)", text, re.M)}


def tls_switch(text: str) -> int | None:
    """The switch in hccn_tool's answer about TLS."""
    match = re.search(r"tls switch\[([0-9])\]", text)
    return int(match[1]) if match else None


def _node(node: str) -> Finding:
    host, _, port = node.partition(":")
    try:
        address = socket.gethostbyname(host)
    except OSError as error:
        return fail(
            "H164", f"{host} does not resolve", str(error), "use its address, or add it to /etc/hosts on every machine"
        )
    started = time.perf_counter()
    try:
        with socket.create_connection((address, int(port) if port.isdigit() else 22), timeout=5):
            return ok("H164", f"{host} answers", f"{address}, {(time.perf_counter() - started) * 1e3:.1f} ms")
    except ConnectionRefusedError:
        return ok("H164", f"{host} is reached", f"{address} (nothing listens on that port)")
    except OSError as error:
        return fail(
            "H164", f"{host} is not reached", f"{address}: {error}", "check routes and firewalls between the machines"
        )


def check_clock() -> Iterator[Finding]:
    """H165: is this machine's clock kept."""
    output = run(["timedatectl", "show", "-p", "NTPSynchronized", "--value"])
    if not output.found or output.code:
        yield skip("H165", "clock", "no timedatectl here")
    elif output.text.strip() == "yes":
        yield ok("H165", "the clock is kept by NTP")
    else:
        yield warn(
            "H165",
            "the clock is not kept",
            "logs of several machines cannot be put in order",
            "switch NTP on",
            "timedatectl set-ntp true",
        )
