"""One self-contained HTML page of a scaling measurement: tables, plots as inline SVG, machine and command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from unisono.bench.scaling import Row

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.3rem .8rem;border-bottom:1px solid #ccc;text-align:right}
th:first-child,td:first-child{text-align:left}.faulty{color:#b00020}figure{margin:1.5rem 0}figcaption{color:#555}
.legend span{display:inline-block;margin-right:1rem}.legend i{display:inline-block;width:.8rem;height:.8rem;margin-right:.3rem}
"""
_PHASES = (
    ("data", "#7f7f7f"),
    ("forward", "#1f77b4"),
    ("backward", "#2ca02c"),
    ("reduce", "#d62728"),
    ("update", "#9467bd"),
)

_FACTS = {"load_before": "load average (1 minute) before the first run", "cores": "processor cores"}


def page(title: str, measured: Mapping[str, Sequence[Row]], machine: dict[str, Any], command: str) -> str:
    """The page.

    Args:
        measured: "weak" and "strong" -> rows.
    """
    facts = "".join(
        f"<tr><td>{escape(_FACTS.get(key, key))}</td><td>{escape(str(value))}</td></tr>" for key, value in machine.items()
    )
    parts = [_section(kind, rows) for kind, rows in measured.items()]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f"<h1>{escape(title)}</h1><p><code>{escape(command)}</code></p>{''.join(parts)}<h2>Machine</h2><table>{facts}</table></html>\n"
    )


def _section(kind: str, rows: Sequence[Row]) -> str:
    head = "<tr><th>devices</th><th>images/s</th><th>a device</th><th>efficiency</th><th>spread</th><th>first step, s</th></tr>"
    body = "".join(
        f"<tr><td>{row.devices}</td><td>{row.images_per_second:,.1f}</td><td>{row.images_per_second / row.devices:,.1f}</td>"
        f"<td>{row.efficiency:.1%}</td><td>{row.spread:.1%}</td><td>{row.first_step_s:.2f}</td></tr>"
        + (f'<tr><td colspan="6" class="faulty">{escape(row.faulty)}</td></tr>' if row.faulty else "")
        for row in rows
    )
    return (
        f"<h2>{kind.capitalize()} scaling</h2><table>{head}{body}</table>"
        f"<figure>{_efficiency_plot(rows)}<figcaption>Efficiency against one device; the line at 100 % is perfect. Bars show the spread of the repeats.</figcaption></figure>"
        f"<figure>{_phase_plot(rows)}{_legend()}<figcaption>Where each rank's time goes, as shares. Reduce is communication that backward does not hide.</figcaption></figure>"
    )


def _efficiency_plot(rows: Sequence[Row]) -> str:
    width, height, left, bottom = 560, 260, 60, 40
    top = max(1.1, *(row.efficiency * (1 + row.spread / 2) for row in rows)) * 1.05

    def y(value: float) -> float:
        return height - bottom - value / top * (height - bottom - 15)

    step = (width - left - 70) / max(1, len(rows) - 1) if len(rows) > 1 else 0
    places = [left + 50 + step * number for number in range(len(rows))]
    points = " ".join(f"{x:.1f},{y(row.efficiency):.1f}" for x, row in zip(places, rows, strict=True))
    marks = "".join(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y(row.efficiency * (1 - row.spread / 2)):.1f}" y2="{y(row.efficiency * (1 + row.spread / 2)):.1f}" stroke="#1f77b4"/>'
        f'<circle cx="{x:.1f}" cy="{y(row.efficiency):.1f}" r="4" fill="#1f77b4"/>'
        f'<text x="{x:.1f}" y="{height - 20}" text-anchor="middle">{row.devices}</text>'
        f'<text x="{x - 8:.1f}" y="{y(row.efficiency) - 8:.1f}" text-anchor="end" font-size="12">{row.efficiency:.0%}</text>'
        for x, row in zip(places, rows, strict=True)
    )
    grid = "".join(
        f'<line x1="{left}" x2="{width - 10}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="{"#888" if value == 1 else "#ddd"}"/>'
        f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end" font-size="12">{value:.0%}</text>'
        for value in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="efficiency by devices" font-family="system-ui" font-size="14">'
        f'{grid}<polyline points="{points}" fill="none" stroke="#1f77b4" stroke-width="2"/>{marks}'
        f'<text x="{width / 2}" y="{height - 3}" text-anchor="middle" font-size="12">devices</text></svg>'
    )


def _phase_plot(rows: Sequence[Row]) -> str:
    bars: list[str] = []
    line, width, label = 0, 420, 120
    for row in rows:
        for rank, shares in enumerate(row.phase_shares_by_rank):
            x = float(label)
            y = 8 + line * 24
            bars.append(
                f'<text x="{label - 8}" y="{y + 14}" text-anchor="end" font-size="12">{row.devices} dev., rank {rank}</text>'
            )
            for phase, colour in _PHASES:
                part = shares.get(phase, 0.0) * width
                bars.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{part:.1f}" height="18" fill="{colour}"><title>{phase} {shares.get(phase, 0.0):.1%}</title></rect>'
                )
                x += part
            line += 1
    return f'<svg viewBox="0 0 560 {16 + line * 24}" width="560" role="img" aria-label="shares of time by rank" font-family="system-ui">{"".join(bars)}</svg>'


def _legend() -> str:
    return (
        '<div class="legend">'
        + "".join(f'<span><i style="background:{colour}"></i>{phase}</span>' for phase, colour in _PHASES)
        + "</div>"
    )
