"""The report as one HTML file that needs nothing but itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import singledispatch
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from cli.report.charts import (
    PALETTE,
    Bars,
    Chart,
    Dots,
    Heatmap,
    Lines,
    Memberships,
    Network,
    layout_positions,
    strongest_edges,
)
from cli.report.run_data import RunData

DIVERGING = (
    (0.0, "#7f3b08"), (0.25, "#f1a340"), (0.5, "#f7f7f7"), (0.75, "#998ec3"), (1.0, "#2d004b"),
)  # fmt: skip
"""PuOr: orange below zero, purple above, for any colour vision."""

# Nothing may be fetched: the page holds its scripts and styles, and asks nobody.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)


def page(runs: Sequence[RunData], charts: Sequence[Chart]) -> str:
    """Return the HTML document of a report."""
    title = " · ".join(run.name for run in runs)
    first = runs[0].config
    setting = f"{first['dataset']}, {first['clients']} clients, {first['partition']}"
    payload = {
        "palette": PALETTE,
        "diverging": DIVERGING,
        "charts": [{"name": chart.name, **plain(chart)} for chart in charts],
    }
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{_text('page.css')}</style></head><body>",
            f'<h1>{escape(title)}</h1><p class="sub">{escape(setting)}</p>',
            _results(runs),
            '<section class="grid">',
            *(_figure(chart) for chart in charts),
            "</section>",
            '<section class="grid">',
            *(_settings(run) for run in runs),
            "</section>",
            f'<script type="application/json" id="report-data">{_safe(payload)}</script>',
            f"<script>{_plotly()}</script>",
            f"<script>{_text('page.js')}</script>",
            "</body></html>",
        ]
    )


def _text(name: str) -> str:
    return files("cli.report").joinpath(name).read_text(encoding="utf-8")


def _plotly() -> str:
    return files("plotly").joinpath("package_data/plotly.min.js").read_text(encoding="utf-8")


def _safe(payload: Mapping[str, Any]) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _figure(chart: Chart) -> str:
    name, title = escape(chart.name, quote=True), f"<h2>{escape(chart.title)}</h2>"
    canvas = f'<div class="chart" id="{name}"></div>'
    if not isinstance(chart, Heatmap):
        return f"<figure>{title}{canvas}</figure>"
    last = len(chart.rounds) - 1
    slider = (
        f'<label class="slider"><input type="range" id="{name}-round" min="0" max="{last}"'
        f' value="{last}" aria-label="round"><output>round {chart.rounds[-1]}</output></label>'
    )
    if chart.truth is None:
        return f"<figure>{title}{canvas}{slider}</figure>"
    truth = f'<div><p>the truth</p><div class="chart" id="{name}-truth"></div></div>'
    pair = f'<div class="pair"><div><p>what was found</p>{canvas}</div>{truth}</div>'
    return f'<figure class="wide">{title}{pair}{slider}</figure>'


def _results(runs: Sequence[RunData]) -> str:
    rows = []
    for run in runs:
        last = run.evaluated[-1] if run.evaluated else {}
        cells = [
            f"{last['mean_test_accuracy']:.4f}" if last else "–",
            f"{last['worst_client_accuracy']:.4f}" if last else "–",
            f"{sum(line.get('up', 0) for line in run.history):,}",
            f"{sum(line.get('down', 0) for line in run.history):,}",
            str(run.history[-1]["round"]) + ("" if run.result else " (not finished)"),
            f"{sum(line.get('seconds', 0.0) for line in run.history):.1f} s",
        ]
        numbers = "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
        rows.append(f"<tr><td>{escape(run.name)}</td>{numbers}</tr>")
    heads = ("run", "mean accuracy", "worst client", "parameters up", "parameters down", "rounds")
    head = "".join(f"<th>{name}</th>" for name in (*heads, "time"))
    return f'<div class="panel scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _settings(run: RunData) -> str:
    pairs = {key: value for key, value in run.config.items() if key != "options"}
    pairs |= {f"option {key}": value for key, value in run.config.get("options", {}).items()}
    pairs |= {f"here: {key}": value for key, value in run.environment.items()}
    rows = "".join(
        f"<tr><th>{escape(str(key))}</th><td>{escape(str(value))}</td></tr>"
        for key, value in pairs.items()
    )
    return f'<div class="panel"><h2>Settings of {escape(run.name)}</h2><table>{rows}</table></div>'


@singledispatch
def plain(chart: Any) -> dict[str, Any]:  # noqa: ANN401 (any chart)
    """Return a chart as plain values for the page's script."""
    raise NotImplementedError(type(chart))


@plain.register
def _(chart: Lines) -> dict[str, Any]:
    series = [{"name": name, "x": list(x), "y": _short(y)} for name, x, y in chart.series]
    return {"kind": "lines", "x_label": chart.x_label, "y_label": chart.y_label, "series": series}


@plain.register
def _(chart: Bars) -> dict[str, Any]:
    series = [{"name": name, "y": _short(values)} for name, values in chart.series]
    return {
        "kind": "bars",
        "y_label": chart.y_label,
        "categories": list(chart.categories),
        "series": series,
    }


@plain.register
def _(chart: Dots) -> dict[str, Any]:
    return {
        "kind": "dots",
        "x_label": chart.x_label,
        "y_label": chart.y_label,
        "rows": list(chart.rows),
        "columns": list(chart.columns),
        "counts": chart.counts.astype(int).tolist(),
    }


@plain.register
def _(chart: Heatmap) -> dict[str, Any]:
    known = np.isfinite(chart.frames)
    low = float(chart.frames[known].min()) if known.any() else 0.0
    high = float(chart.frames[known].max()) if known.any() else 1.0
    # One byte a cell: 100 rounds of 100 clients are 1.3 MB, and no eye sees 255 shades.
    levels = np.full(chart.frames.shape, 255, np.uint8)
    levels[known] = np.rint((chart.frames[known] - low) / ((high - low) or 1.0) * 254)
    return {
        "kind": "heatmap",
        "labels": list(chart.labels),
        "size": chart.frames.shape[1],
        "rounds": list(chart.rounds),
        "low": low,
        "high": high,
        "frames": base64.b64encode(levels.tobytes()).decode(),
        "truth": None if chart.truth is None else chart.truth.astype(int).tolist(),
    }


@plain.register
def _(chart: Memberships) -> dict[str, Any]:
    return {
        "kind": "memberships",
        "labels": list(chart.labels),
        "rounds": list(chart.rounds),
        "coalitions": chart.coalitions.tolist(),
    }


@plain.register
def _(chart: Network) -> dict[str, Any]:
    at = layout_positions(chart.weights)
    return {
        "kind": "network",
        "labels": list(chart.labels),
        "x": _short(at[:, 0]),
        "y": _short(at[:, 1]),
        "coalitions": chart.coalitions.tolist(),
        "edges": strongest_edges(chart.weights),
    }


def _short(numbers: Any) -> list[float | None]:  # noqa: ANN401 (any sequence of numbers)
    """Return numbers with six digits; what is not one is null."""
    return [
        None if number is None or not np.isfinite(number) else float(f"{number:.6g}")
        for number in numbers
    ]
