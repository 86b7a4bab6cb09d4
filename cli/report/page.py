"""The report as one HTML file that needs nothing but itself."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from functools import singledispatch
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from cli.report.charts import (
    BANDS,
    BarChart,
    Chart,
    ChartTable,
    ColumnChart,
    Dots,
    Heatmap,
    Lines,
    Memberships,
    NetworkChart,
    layout_positions,
    line_style,
    strongest_edges,
)
from cli.report.contents import Section
from cli.report.methods import Method, Standings, standing_of
from coalitions.drawing.document import html_document, plotly_script, words
from coalitions.drawing.pictures import PALETTE
from learners.measures.scores import ACCURACY, main_metric, score_of
from learners.runs.reading import RunRecord

DIVERGING = (
    (0.0, "#7f3b08"), (0.25, "#f1a340"), (0.5, "#f7f7f7"), (0.75, "#998ec3"), (1.0, "#2d004b"),
)  # fmt: skip
"""PuOr: orange below zero, purple above, for any colour vision."""

DIVERGING_DARK = (
    (0.0, "#fdb863"), (0.25, "#8a5410"), (0.5, "#1c2024"), (0.75, "#5d4a99"), (1.0, "#c9bdf0"),
)  # fmt: skip
"""The same at night: what is near zero is as dark as the page."""


def page(
    methods: Sequence[Method],
    sections: Sequence[Section],
    refresh: float = 0,
    baseline: str | None = None,
) -> str:
    """Return the HTML document of a report.

    Parameters
    ----------
    methods, sections
        What it shows.
    refresh
        Seconds after which a browser loads it again; 0 is never.
    """
    runs = [run for method in methods for run in method.runs]
    title = _title(methods)
    compared = standing_of(methods, baseline)
    charts = [chart for section in sections for chart in section.charts]
    payload = {
        "palette": PALETTE,
        "diverging": DIVERGING,
        "diverging_dark": DIVERGING_DARK,
        "bands": BANDS,
        "styles": [line_style(number) for number in range(len(methods))],
        "charts": [{"name": chart.name, **plain(chart)} for chart in charts],
    }
    body = [
        f'<h1>{words(title)}</h1><p class="sub">{words(_setting(runs))}</p>',
        *_verdict(methods, compared),
        _results(methods, compared),
        _left_out(runs),
        _legend(methods),
        *(_section(section, opened=len(sections) <= 1 + OPENED) for section in sections),
        '<section class="grid">',
        *_settings(methods),
        "</section>",
    ]
    if refresh:
        done = max(len(run.history) for run in runs)
        body.insert(1, f'<p class="sub">Going on: round {done}. This page loads itself again.</p>')
    document = html_document(
        title,
        body,
        data={"report-data": payload},
        scripts=[plotly_script(), _text("page.js")],
        style=_text("page.css"),
    )
    if not refresh:
        return document
    again = f'<meta http-equiv="refresh" content="{max(1, round(refresh))}">'
    return document.replace('<meta name="viewport"', f'{again}<meta name="viewport"', 1)


OPENED = 3
"""So many runs show their own charts at once; those of more are folded up."""


def _title(methods: Sequence[Method]) -> str:
    n_runs = sum(len(method.runs) for method in methods)
    if n_runs <= 3:
        return " · ".join(run.name for method in methods for run in method.runs)
    if len(methods) == 1:
        return f"{methods[0].name}, {n_runs} seeds"
    return f"{len(methods)} methods" + (f", {n_runs} runs" if n_runs > len(methods) else "")


def _setting(runs: Sequence[RunRecord]) -> str:
    """Say what all runs have in common of what matters most."""
    words = {
        "dataset": "{}", "clients": "{} clients", "partition": "{}", "rounds": "{} rounds",
    }  # fmt: skip
    values = {key: {str(run.config.get(key, "?")) for run in runs} for key in words}
    told = [
        text.format(*values[key]) if len(values[key]) == 1 else f"several {key}"
        for key, text in words.items()
    ]
    return ", ".join(told)


def _legend(methods: Sequence[Method]) -> str:
    """Return one legend for all curves: a click hides a method everywhere, a second shows it."""
    if len(methods) < 2:
        return ""
    chips = []
    for number, method in enumerate(methods):
        paint, dash = line_style(number)
        line = (
            f'<svg width="26" height="8" aria-hidden="true"><line x1="0" y1="4" x2="26" y2="4"'
            f' stroke="{paint}" stroke-width="3" stroke-dasharray="{STROKES[dash]}"/></svg>'
        )
        chips.append(
            f'<button type="button" data-method="{number}" aria-pressed="true">{line}'
            f"{words(method.name)}</button>"
        )
    everyone = '<button type="button" id="everyone">all / none</button>'
    return f'<nav class="legend" aria-label="methods shown">{"".join(chips)}{everyone}</nav>'


STROKES = {"solid": "none", "dash": "7 4", "dot": "2 3", "dashdot": "7 3 2 3"}


def _section(section: Section, opened: bool) -> str:
    figures = "\n".join(_figure(chart) for chart in section.charts)
    grid = f'<div class="grid">{figures}</div>'
    if not section.title:
        return f"<section>{grid}</section>"
    open_ = " open" if opened else ""
    return f"<details{open_}><summary>{words(section.title)}</summary>{grid}</details>"


def _text(name: str) -> str:
    return files("cli.report").joinpath(name).read_text(encoding="utf-8")


def _figure(chart: Chart) -> str:
    name = escape(chart.name)
    save = f'<button type="button" class="save" data-chart="{name}" title="as a table">CSV</button>'
    title = f"<h2>{words(chart.title)}{save}</h2>"
    height = _height(chart)
    style = "" if height is None else f' style="height:{height}px"'
    canvas = f'<div class="chart" id="{name}"{style}></div>'
    if not isinstance(chart, Heatmap):
        return f"<figure>{title}{canvas}</figure>"
    last = len(chart.rounds) - 1
    slider = (
        f'<label class="slider"><input type="range" id="{name}-round" min="0" max="{last}"'
        f' value="{last}" aria-label="round"><output>round {chart.rounds[-1]}</output></label>'
    )
    if chart.truth is None:
        why = f"<p>{words(chart.truth_is)}</p>" if chart.truth_is else ""
        return f"<figure>{title}{canvas}{slider}{why}</figure>"
    legend = f"<p>the truth: {words(chart.truth_is)}</p>"
    truth = f'<div>{legend}<div class="chart" id="{name}-truth"></div></div>'
    pair = f'<div class="pair"><div><p>what was found</p>{canvas}</div>{truth}</div>'
    return f'<figure class="wide">{title}{pair}{slider}</figure>'


def _height(chart: Chart) -> int | None:
    """Return the height in pixels of a chart that grows with its rows; None for the usual one."""
    if isinstance(chart, BarChart):
        return max(340, 90 + 26 * len(chart.categories))
    if isinstance(chart, ChartTable):
        return max(340, 80 + 15 * len(chart.rows))
    return None


def _verdict(methods: Sequence[Method], compared: Standings | None) -> list[str]:
    """Say which method is the best, and whether that is settled; nothing of a single method."""
    if len(methods) < 2:
        return []
    told = (
        "These runs cannot be ranked: their seeds, rounds, metrics or tasks differ."
        if compared is None
        else compared.sentence
    )
    return [f"<p>{words(told)}</p>"]


def _by_score(groups: Sequence[Sequence[RunRecord]]) -> list[int]:
    """Return places of runs, or of methods' runs, the best score first and those without last.

    Where metrics differ nothing is moved.
    """
    lines = [[run.evaluated[-1] for run in runs if run.evaluated] for runs in groups]
    metrics = {main_metric(line) for each in lines for line in each}
    if len(metrics) != 1:
        return list(range(len(groups)))
    (metric,) = metrics
    keys = []
    for each in lines:
        scores = [score_of(line, metric) for line in each if _has(line, metric)]
        keys.append(-float(np.mean([score.gain for score in scores])) if scores else math.inf)
    return sorted(range(len(groups)), key=keys.__getitem__)


def _results(methods: Sequence[Method], compared: Standings | None) -> str:
    """Return the table of results: of the methods, and folded up of their runs if they differ."""
    runs = [run for method in methods for run in method.runs]
    methods = [methods[k] for k in _by_score([method.runs for method in methods])]
    runs = [runs[k] for k in _by_score([[run] for run in runs])]
    of_runs = _table("run", [(run.name, _cells([run])) for run in runs])
    legend = "" if compared is None else f'<p class="sub">{words(compared.legend)}</p>'
    rows = []
    for method in methods:
        cells = _cells(method.runs)
        if compared is not None:  # after the accuracy, what it is worth
            place = 1 + next(k for k, key in enumerate(cells) if key.startswith("mean "))
            pairs = list(cells.items())
            cells = dict([*pairs[:place], *compared.cells(method.name).items(), *pairs[place:]])
        rows.append((method.name, cells))
    if len(runs) == len(methods):
        return f'<div class="panel">{_table("run", rows)}{legend}</div>'
    folded = f"<details><summary>every run</summary>{of_runs}</details>"
    return f'<div class="panel">{_table("method", rows)}{legend}{folded}</div>'


def _left_out(runs: Sequence[RunRecord]) -> str:
    """Say whose replies were refused, and why; nothing if nobody's were."""
    from learners.server.client_failures import sentence

    lines = []
    for run in runs:
        told = [sentence(each, int(run.history[-1]["round"])) for each in run.left_out]
        if told:
            lines.append(f"<p>{words(run.name)} left out {words('; '.join(told))}.</p>")
    return f'<div class="panel">{"".join(lines)}</div>' if lines else ""


def _table(head: str, rows: Sequence[tuple[str, Mapping[str, str]]]) -> str:
    button = '<th aria-sort="none"><button type="button" class="sort">{}</button></th>'
    heads = "".join(button.format(words(name) or "name") for name in (head, *rows[0][1]))
    lines = []
    top = {
        key: max((cells[key][:6] for _, cells in rows if cells[key] != "–"), default=None)
        for key in ("mean accuracy", "worst client")
        if key in rows[0][1] and len(rows) > 1
    }
    for name, cells in rows:
        numbers = "".join(
            f'<td class="{_kind(key, cell[:6] == top.get(key))}">{words(cell)}</td>'
            for key, cell in cells.items()
        )
        lines.append(f"<tr><th>{words(name)}</th>{numbers}</tr>")
    return (
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _kind(key: str, best: bool) -> str:
    return "words" if key == "options" else "number best" if best else "number"


def _cells(runs: Sequence[RunRecord]) -> dict[str, str]:
    """Return what the table of results says about a run, or about the seeds of a method."""

    def mean(values: Sequence[float], form: str) -> str:
        return format(float(np.mean(values)), form)

    def total(key: str) -> list[float]:
        return [float(sum(line.get(key, 0) for line in run.history)) for run in runs]

    last = [run.evaluated[-1] for run in runs if run.evaluated]
    metric = main_metric(last[0]) if last else ACCURACY
    scores = [score_of(line, metric) for line in last if _has(line, metric)]
    means = [score.mean for score in scores]
    deviation = f" ± {np.std(means, ddof=1):.4f}" if len(means) > 1 else ""
    # Of accuracies, the line has the worst among honest clients.
    worsts = [line["worst_client_accuracy"] for line in last]
    if metric != ACCURACY:
        worsts = [score.worst for score in scores]
    worst = [float(each) for each in worsts if each is not None]
    rounds = sorted({int(run.history[-1]["round"]) for run in runs})
    unfinished = sum(run.result is None for run in runs)
    note = (
        ""
        if not unfinished
        else " (not finished)"
        if len(runs) == 1
        else (f" ({unfinished} not finished)")
    )
    cells = {} if len(runs) == 1 else {"seeds": str(len(runs))}
    return cells | {
        f"mean {metric}": mean(means, ".4f") + deviation if means else "–",
        "worst client": mean(worst, ".4f") if worst else "–",
        "parameters up": mean(total("up"), ",.0f"),
        "parameters down": mean(total("down"), ",.0f"),
        "rounds": "–".join(str(t) for t in dict.fromkeys([rounds[0], rounds[-1]])) + note,
        "time": mean(total("seconds"), ".1f") + " s",
    }


def _has(line: Mapping[str, Any], metric: str) -> bool:
    told = (line.get("metrics") or {}).get(metric)
    mean = line.get("mean_test_accuracy") if told is None else told["mean"]
    return mean is not None


def _settings(methods: Sequence[Method]) -> list[str]:
    """Return what all runs were asked and had, and a table of what differs."""
    runs = [run for method in methods for run in method.runs]
    told = [_told(run) for run in runs]
    keys = dict.fromkeys(key for each in told for key in each)
    same = {
        key: told[0][key]
        for key in keys
        if all(key in each and each[key] == told[0][key] for each in told)
    }
    rows = "".join(
        f"<tr><th>{words(key)}</th><td>{words(value)}</td></tr>" for key, value in same.items()
    )
    title = f"Settings of {runs[0].name}" if len(runs) == 1 else "Settings of all runs"
    folded = f"<details><summary>{words(title)}</summary><table>{rows}</table></details>"
    panels = [f'<div class="panel">{folded}</div>']
    if len(same) < len(keys):
        plain_keys = [key for key in keys if key not in same and not key.startswith("option ")]
        lines = [(method.name, _differing(method, plain_keys)) for method in methods]
        panels.append(f'<div class="panel"><h2>What differs</h2>{_table("", lines)}</div>')
    return panels


def _differing(method: Method, keys: Sequence[str]) -> dict[str, str]:
    """Return a method's settings among those that differ; the values of several seeds as a list."""
    told = [_told(run) for run in method.runs]
    values = {key: ", ".join(dict.fromkeys(each.get(key, "") for each in told)) for key in keys}
    options = method.runs[0].config["options"]
    return values | {"options": ", ".join(f"{key}={value}" for key, value in options.items())}


def _told(run: RunRecord) -> dict[str, str]:
    pairs = {key: value for key, value in run.config.items() if key != "options"}
    pairs |= {f"option {key}": value for key, value in run.config["options"].items()}
    pairs |= {f"here: {key}": value for key, value in run.environment.items()}
    return {str(key): str(value) for key, value in pairs.items()}


@singledispatch
def plain(chart: Any) -> dict[str, Any]:  # noqa: ANN401 (any chart)
    """Return a chart as plain values for the page's script."""
    raise NotImplementedError(type(chart))


@plain.register
def _(chart: Lines) -> dict[str, Any]:
    curves = [
        {
            "method": curve.method,
            "name": words(curve.name),
            "x": [int(x) for x in curve.x],
            "y": _short(curve.y),
            "low": None if curve.low is None else _short(curve.low),
            "high": None if curve.high is None else _short(curve.high),
        }
        for curve in chart.curves
    ]
    told = {"x_label": chart.x_label, "y_label": chart.y_label, "y_range": chart.y_range}
    return {"kind": "lines", **told, "curves": curves}


@plain.register
def _(chart: BarChart) -> dict[str, Any]:
    return {
        "kind": "bars",
        "x_label": chart.x_label,
        "categories": list(map(words, chart.categories)),
        "series": [{"name": words(name), "x": _short(values)} for name, values in chart.series],
    }


@plain.register
def _(chart: ColumnChart) -> dict[str, Any]:
    return {
        "kind": "columns",
        "x_label": chart.x_label,
        "y_label": chart.y_label,
        "categories": list(map(words, chart.categories)),
        "series": [
            {"method": method, "name": words(name), "y": _short(values)}
            for method, name, values in chart.series
        ],
    }


@plain.register
def _(chart: ChartTable) -> dict[str, Any]:
    return {
        "kind": "table",
        "x_label": chart.x_label,
        "rows": list(map(words, chart.rows)),
        "columns": list(map(words, chart.columns)),
        "values": [_short(row) for row in chart.values],
    }


@plain.register
def _(chart: Dots) -> dict[str, Any]:
    return {
        "kind": "dots",
        "x_label": chart.x_label,
        "y_label": chart.y_label,
        "rows": list(map(words, chart.rows)),
        "columns": list(map(words, chart.columns)),
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
        "labels": list(map(words, chart.labels)),
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
        "labels": list(map(words, chart.labels)),
        "rounds": list(chart.rounds),
        "coalitions": chart.coalitions.tolist(),
    }


@plain.register
def _(chart: NetworkChart) -> dict[str, Any]:
    at = layout_positions(chart.weights)
    return {
        "kind": "network",
        "labels": list(map(words, chart.labels)),
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
