"""The report as one HTML file without any outside part: it opens from a disk, in light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from unisono.migrate.findings import FileResult, Finding, Options
from unisono.migrate.report import rule_table, sections, summarize, unified_diff

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--soft:#5f6770;--line:#dfe3e8;--card:#f6f8fa;--do:#b3261e;
--re:#8a5a00;--ok:#1a6f3c;--hint:#3b5bb5;
--add:#e3f6e8;--del:#fde8e6;--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e8ea;--soft:#9aa3ad;--line:#2c3238;--card:#1c2126;
--do:#ff8a80;--re:#ffc46b;--ok:#7fd6a0;
--hint:#9db7ff;--add:#16351f;--del:#40201d}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1080px;margin:0 auto;padding:32px 20px 80px}h1{font-size:26px;margin:0 0 4px}
h2{font-size:18px;margin:0}h3{font-size:14px;margin:18px 0 6px}
code,pre{font-family:var(--mono);font-size:13px}.soft{color:var(--soft)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px;margin:22px 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px 14px}
.tile b{display:block;font-size:24px;font-variant-numeric:tabular-nums}
table{width:100%;border-collapse:collapse;margin:8px 0 20px}th{text-align:left;font-weight:600;color:var(--soft)}
th,td{padding:5px 10px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
details{border:1px solid var(--line);border-radius:8px;margin:12px 0;padding:0 16px}
summary{cursor:pointer;padding:12px 0;display:flex;gap:12px;flex-wrap:wrap;
align-items:baseline}summary h2{font-family:var(--mono);font-size:14px;overflow-wrap:anywhere;flex:1}
details details{border-style:dashed;margin:14px 0}
ul{list-style:none;margin:0 0 12px;padding:0}li{padding:8px 0 8px 12px;border-left:3px solid var(--line);margin:6px 0}
li.do{border-color:var(--do)}li.re{border-color:var(--re)}li.ok{border-color:var(--ok)}
li.hint{border-color:var(--hint)}
li code.src{display:block;overflow-x:auto;white-space:pre;background:var(--card);padding:4px 8px;border-radius:4px;
margin:4px 0}
.badge{font:600 12px var(--mono);padding:1px 6px;border-radius:4px;border:1px solid var(--line)}
.do>.badge,.n-do{color:var(--do)}.re>.badge{color:var(--re)}
.ok>.badge{color:var(--ok)}.hint>.badge{color:var(--hint)}
pre.diff{overflow-x:auto;background:var(--card);border-radius:6px;padding:10px 0;margin:0 0 14px}
pre.diff span{display:block;padding:0 12px;white-space:pre}.add{background:var(--add)}.del{background:var(--del)}
.at{color:var(--soft)}
"""
MARKS = {"To do by hand": "do", "Rewritten: read again": "re", "Rewritten": "ok", "Remarks": "hint"}


def as_html(results: Sequence[FileResult], options: Options, command: str) -> str:
    """The whole page as text."""
    summary, rules = summarize(results), rule_table()
    tiles = (
        (summary.left, "to do by hand", "n-do" if summary.left else ""),
        (summary.fixed, "places rewritten", ""),
        (summary.hints, "remarks", ""),
        (summary.changed_files, f"of {summary.files:,} files changed", ""),
        (summary.unreadable_files, "files not readable", "n-do" if summary.unreadable_files else ""),
    )
    rows = "".join(
        f"<tr><td><code>{code}</code></td><td>{escape(rules[code].title)}</td><td>{rules[code].fix_kind}</td>"
        f'<td class="n">{count}</td></tr>'
        for code, count in sorted(summary.by_code.items())
    )
    files = "".join(_file(result) for result in sorted(results, key=_urgency) if result.findings or result.changed)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Migration to {options.target}</title><style>{STYLE}</style></head><body><main>"
        f'<h1>Migration to {options.target}</h1><div class="soft"><code>{escape(command)}</code></div>'
        f'<div class="tiles">{"".join(_tile(*tile) for tile in tiles)}</div>'
        f'<table><thead><tr><th>code</th><th>what</th><th>fix</th><th class="n">places</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        f"{files or '<p>Nothing was found.</p>'}</main></body></html>\n"
    )


def _tile(number: int, label: str, mark: str) -> str:
    return f'<div class="tile"><b class="{mark}">{number:,}</b><span class="soft">{escape(label)}</span></div>'


def _urgency(result: FileResult) -> tuple[int, str]:
    return -sum(finding.left for finding in result.findings), result.path


def _file(result: FileResult) -> str:
    left = sum(finding.left for finding in result.findings)
    fixed = sum(finding.fixed for finding in result.findings)
    parts = [
        f"<h3>{title} ({len(found)})</h3><ul>{''.join(_finding(finding, MARKS[title]) for finding in found)}</ul>"
        for title, found in sections(result.findings)
    ]
    diff = unified_diff(result)
    if diff:
        parts.append(f'<details><summary><h2>diff</h2></summary><pre class="diff">{_diff(diff)}</pre></details>')
    head = f'<h2>{escape(result.path)}</h2><span class="soft">{left} to do, {fixed} rewritten</span>'
    return f"<details{' open' if left else ''}><summary>{head}</summary>{''.join(parts)}</details>"


def _finding(finding: Finding, mark: str) -> str:
    source = f'<code class="src">{escape(finding.excerpt)}</code>' if finding.excerpt else ""
    advice = f"<div>Advice: {escape(finding.advice)}</div>" if finding.advice else ""
    place = f'<span class="badge">{finding.code}</span> <span class="soft">line {finding.line}</span>'
    return f'<li class="{mark}">{place} {escape(finding.why)}{source}{advice}</li>'


def _diff(text: str) -> str:
    marks = {"+": "add", "-": "del", "@": "at"}
    return "".join(
        f'<span class="{marks.get(line[:1], "")}">{escape(line) or " "}</span>' for line in text.splitlines()[2:]
    )
