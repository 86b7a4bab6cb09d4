"""What is written of an experiment; and kept experiments, judged again or made again in part."""

from __future__ import annotations

import datetime
import json
import os
import platform
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from coalitions import __version__
from coalitions.drawing.pictures import picture
from coalitions.errors import InvalidInputError, NoSolutionError
from coalitions.files.opening import json_text
from coalitions.files.writing import write_whole
from learners.experiments.paired_statistics import CONFIDENCE
from learners.experiments.resumable_runs import CellWatch, tried_cells
from learners.reproduction.claims import Claim, Measured
from learners.reproduction.experiment import EXPERIMENTS, SECOND_LOOK, Experiment, Key, Scale
from learners.reproduction.pages import (
    WIDTH,
    agreements,
    comma_separated,
    earlier_figures,
    item,
    latex,
    markdown,
)
from learners.reproduction.printed import paper_table
from learners.settings.config import NO_EFFECT, RunConfig, plain_settings

if TYPE_CHECKING:
    from learners.reproduction.carry_out import Plan
    from learners.runs.result import Result

ALWAYS_TOLD = ("rounds", "local_epochs", "batch_size", "optimizer", "lr")
"""Settings that a table's page tells even where they are the usual ones."""

ELSEWHERE = (
    *("seed", "data_dir", "device", "compute", "engine"),
    *NO_EFFECT,
)
"""Settings that are told elsewhere, or change no figure of the last round."""


def judged_again(folder: Path) -> dict[str, Any]:
    """Judge the kept figures of an experiment by the program as it is, and write what follows.

    Nothing is trained. Figures, settings, command and machine stay as they are kept; claims, the
    tables and `experiment.json` are written anew. The summary beside the folder is not.

    Parameters
    ----------
    folder
        The experiment's folder, with its `experiment.json`.

    Returns
    -------
    dict
        What `experiment.json` then has.
    """
    kept = json.loads((folder / "experiment.json").read_text("utf-8"))
    experiment, scale = EXPERIMENTS[kept["name"]](), kept["scale"]
    found = Measured(tuple(kept["columns"]), kept["rows"], kept["unit"])
    n_seeds = len(kept["seeds"])
    claims = experiment.judged(found, {}, scale, n_seeds)
    document = {**kept, **judgement(experiment, scale, n_seeds, found, claims)}
    for name, content in files_of(experiment, found, claims, document).items():
        write_whole(folder / name, content)
    return document


def rows_made_again(
    plan: Plan,
    rows: Collection[str],
    kept: Path,
    *,
    jobs: int = 1,
    watch: CellWatch | None = None,
) -> dict[str, Any]:
    """Make some rows of a kept experiment again, and judge all of it by the program as it is.

    The other rows keep their figures and settings, so they must be of the same seeds.

    Parameters
    ----------
    plan
        The experiment, with the folder where its runs are; see `plan`.
    rows
        Names of the rows.
    kept
        The experiment's folder with its `experiment.json`, which is written anew.
    jobs, watch
        See `carry_out`.

    Returns
    -------
    dict
        What `experiment.json` then has.
    """
    experiment, scale = plan.experiment, plan.scale
    document = json.loads((kept / "experiment.json").read_text("utf-8"))
    if (document["name"], document["scale"], document["seeds"]) != (
        plan.name, scale, list(plan.seeds),
    ):  # fmt: skip
        raise InvalidInputError(
            f"{kept} has {document['name']} at {document['scale']} with seeds"
            f" {document['seeds']}; rows can be made again only for the same"
        )
    unknown = set(rows) - {row for row, _ in plan.runs}
    if unknown or not rows:
        raise InvalidInputError(
            f"there are no rows {sorted(unknown)} in {plan.name}; it has"
            f" {', '.join(dict.fromkeys(row for row, _ in plan.runs))}"
        )
    if type(experiment).figures is not Experiment.figures:
        raise InvalidInputError(
            f"the figures of {plan.name} need all of its runs: make it as a whole"
        )
    again = replace(plan, runs={key: each for key, each in plan.runs.items() if key[0] in rows})
    made = dict(
        zip(
            [cell.folder for cell in again.cells],
            tried_cells(again.cells, jobs=jobs, watch=watch),
            strict=True,
        )
    )
    results: dict[Key, list[Result]] = {}
    for key, cells in again.runs.items():
        for cell in cells:
            outcome = made[cell.folder]
            if isinstance(outcome, NoSolutionError):
                raise outcome
            results.setdefault(key, []).append(outcome)
    fresh = experiment.measured(results, scale, plan.seeds)
    found = Measured(
        tuple(document["columns"]),
        {row: fresh.rows[row] if row in rows else each for row, each in document["rows"].items()},
        document["unit"],
    )
    before, after = document["settings"], settings_of(again)
    settings = {
        (each["row"], each["columns"]): told["shared"] | each["settings"]
        for told in (before, after)
        for each in told["runs"]
    }
    claims = experiment.judged(found, {}, scale, len(plan.seeds))
    document = {
        **document,
        "rows": {row: dict(each) for row, each in found.rows.items()},
        "settings": _divided(settings),
        "made_again": {
            **document.get("made_again", {}),
            **dict.fromkeys(sorted(rows), machine_of_today()),
        },
        **judgement(experiment, scale, len(plan.seeds), found, claims),
    }
    files = files_of(experiment, found, claims, document)
    for name, figure in experiment.figures(found, results, scale).items():
        for kind in ("svg", "png"):
            files[f"{name}.{kind}"] = picture(figure, kind, dpi=120)
    for name, content in files.items():
        write_whole(kept / name, content)
    return document


def judgement(
    experiment: Experiment, scale: Scale, n_seeds: int, found: Measured, claims: Sequence[Claim]
) -> dict[str, Any]:
    """Return what follows from the figures."""
    return {
        "seeds_added": experiment.seeds_added(scale, n_seeds),
        "order": agreements(found, experiment.printed),
        "claims": [claim.document() for claim in claims],
        "tried": list(experiment.tried(scale)),
    }


def files_of(
    experiment: Experiment,
    found: Measured,
    claims: Sequence[Claim],
    document: Mapping[str, Any],
) -> dict[str, bytes]:
    """Return the files of figures and verdicts by name."""
    printed, scale = experiment.printed, document["scale"]
    seeds = tuple(document["seeds"])
    return {
        "table.md": page(experiment, found, claims, document).encode(),
        "table.csv": comma_separated(found, printed, seeds, experiment.once(scale)).encode(),
        "table.tex": latex(found, printed).encode(),
        "claims.json": json_text(document["claims"]).encode(),
        "experiment.json": json_text(document).encode(),
    }


def page(
    experiment: Experiment,
    found: Measured,
    claims: Sequence[Claim],
    document: Mapping[str, Any],
) -> str:
    """Return the page of a table: the figures, the claims, and what a reader must know."""
    table = markdown(found, experiment.printed, claims)
    if experiment.first_version is not None:
        earlier = paper_table(experiment.first_version)
        table += earlier_figures(found, experiment.printed, earlier)
    return _heading(experiment, document) + table + _foot(experiment, document)


def _heading(experiment: Experiment, document: Mapping[str, Any]) -> str:
    printed, n_seeds = experiment.printed, len(document["seeds"])
    source = "" if printed is None else f"{printed.paper}, {printed.where}. "
    seeds = "one seed" if n_seeds == 1 else f"{n_seeds} seeds, mean ± sd"
    lines = [
        f"# {document['name']}: {experiment.title}",
        "",
        textwrap.fill(f"{source}Scale `{document['scale']}`, {seeds}.", WIDTH),
    ]
    if document["command"]:
        lines += ["", f"`{document['command']}`"]
    return "\n".join([*lines, "", ""])


def _foot(experiment: Experiment, document: Mapping[str, Any]) -> str:
    scale, n_seeds, machine = document["scale"], len(document["seeds"]), document["machine"]
    notes = [*document["missing"], *experiment.notes(scale)]
    if experiment.printed is not None:
        notes += experiment.printed.notes
    if experiment.seeds_added(scale, n_seeds):
        notes.append(
            f"Seeds were added to the usual {experiment.seeds[scale]}: as a second look, intervals"
            f" are of {100 * SECOND_LOOK:g} % in place of {100 * CONFIDENCE:g} %."
        )
    notes += experiment.tried(scale)
    notes += _told_settings(document["settings"]["shared"])
    notes += [
        f"{row} was made again on {how['date']}, with version {how['version']}."
        for row, how in document.get("made_again", {}).items()
    ]
    notes.append(
        f"{machine['date']}, {machine['cores']} cores, {machine['system']}, version"
        f" {machine['version']}."
    )
    return "\n" + "\n".join(map(item, notes)) + "\n"


def settings_of(plan: Plan) -> dict[str, Any]:
    """Return the settings that all runs share, and for each those that are its own."""
    told = {
        key: {
            name: value
            for name, value in plain_settings(cell.config).items()
            if name not in ELSEWHERE
        }
        for key, (cell, *_) in plan.runs.items()
    }
    return _divided(told)


def _divided(told: Mapping[Key, Mapping[str, Any]]) -> dict[str, Any]:
    """Return settings that all runs share, and for each those that are its own."""
    first = next(iter(told.values()), {})
    shared = {
        name: value
        for name, value in first.items()
        if all(name in each and each[name] == value for each in told.values())
    }
    return {
        "shared": shared,
        "runs": [
            {
                "row": row,
                "columns": columns,
                "settings": {name: value for name, value in each.items() if name not in shared},
            }
            for (row, columns), each in told.items()
        ],
    }


def _told_settings(shared: Mapping[str, Any]) -> list[str]:
    """Return a sentence on the settings that all runs share, if there are runs."""
    usual = plain_settings(RunConfig())
    told = [
        f"{name} {_spoken(value)}"
        for name, value in shared.items()
        if name in ALWAYS_TOLD or usual.get(name) != value
    ]
    if not told:
        return []
    return [f"All runs have: {', '.join(told)}. `experiment.json` has what is each run's own."]


def _spoken(value: object) -> str:
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


def machine_of_today() -> dict[str, Any]:
    """Return what a page tells of where and when its runs were made."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "version": __version__,
        "torch": torch.__version__,
    }
