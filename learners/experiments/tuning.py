"""A search over options with the same budget for every method, on data that are not reported."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coalitions.errors import InvalidInputError, NoSolutionError, with_keywords
from coalitions.results import PublicResult, Row
from learners.data.client_data import FederatedData
from learners.data.clients import scored_on_held_out, share_with_held_out
from learners.experiments.resumable_runs import Cell, CellWatch, planned_cell, tried_cells
from learners.experiments.search_space import (
    FIRST_SEED,
    Space,
    Strategy,
    Trial,
    TuningSearch,
    drawn,
    read_space,
    search_of,
)
from learners.experiments.variants import Variant, variant_of, with_seed
from learners.measures.losses import LossFunction
from learners.measures.metrics import OwnMetric
from learners.measures.scores import main_metric, score_of
from learners.runs.inputs import Clients, Factory, LastData, UserInputs
from learners.runs.prepare import checked
from learners.runs.result import Result
from learners.runs.run import say
from learners.settings.config import RunConfig, given_settings, toml_value
from learners.settings.seeding import generator, seeds_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ATTEMPTS = 50


@dataclass(frozen=True, eq=False)
class Tuned(PublicResult):
    """What a search over the options of several methods found.

    Attributes
    ----------
    metric
        What was searched for, on data that were held out of training.
    trials
        Every trial of every rung.
    best
        The best trial of each method.
    search
        What was searched: settings, spaces, seeds.
    """

    metric: str
    trials: tuple[Trial, ...]
    best: Mapping[str, Trial]
    search: TuningSearch

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds on which options were chosen; no comparison should report them."""
        return tuple(self.search.numbers)

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The best options and settings of each method, those that were fixed among them."""
        return {name: self.search.values_of(trial) for name, trial in self.best.items()}

    @property
    def named(self) -> dict[str, float | None]:
        """The score of the best trial of each method."""
        return {name: trial.score for name, trial in self.best.items()}

    @property
    def defaults(self) -> dict[str, Trial]:
        """The trial of each method as it is, in the last rung that it reached."""
        return {each.algorithm: each for each in self.trials if not each.number}

    def _rows(self) -> list[Row]:
        """Return a line for each trial of each rung; the score of one that diverged is missing."""
        best = list(self.best.values())
        return [
            {
                "algorithm": trial.algorithm,
                "trial": trial.number,
                "rounds": trial.rounds,
                "score": trial.score,
                "best": trial in best,
                **trial.values,
            }
            for trial in self.trials
        ]

    def plot(self, path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure: the scores of all trials, a line for each method.

        Trials with fewer rounds than the last rung are pale. A cross is the method as it is, and a
        ring is the best trial.

        Parameters
        ----------
        path
            Where to write the picture as well: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        from coalitions.drawing.pictures import drawn_to_file

        return drawn_to_file(lambda: _tuning_figure(self), path)

    def to_dict(self) -> dict[str, Any]:
        """Return the search as plain values, as ``coalitions tune --json`` prints them."""
        search = self.search
        return {
            "metric": self.metric,
            "seeds": list(self.seeds),
            "trials": search.trials,
            "strategy": search.strategy,
            "rounds_each": search.cost,
            "algorithms": {
                name: {
                    "space": {key: str(each) for key, each in search.spaces[name].items()},
                    "best": best.document(),
                    "tried": [each.document() for each in self.trials if each.algorithm == name],
                }
                for name, best in self.best.items()
            },
        }

    def to_toml(self) -> str:
        """Return the TOML file that ``coalitions compare`` takes, with the best of each method."""
        usual = RunConfig().values()
        lines = ["# Made by `coalitions tune`; `coalitions compare FILE` takes it."]
        lines += [
            f"{key} = {toml_value(value)}"
            for key, value in RunConfig.of(self.search.shared).values().items()
            if key not in _NOT_SHARED and value != usual.get(key)
        ]
        lines += [
            "",
            "[tuning]",
            f"seeds = {toml_value(list(self.seeds))}",
            f"trials = {self.search.trials}",
            f"strategy = {toml_value(self.search.strategy)}",
            f"metric = {toml_value(self.metric)}",
        ]
        for name, values in self.settings.items():
            score = self.best[name].score
            lines += ["", f"[tuned.{name}]  # {self.metric} {score:.4f} on held-out data"]
            lines += [
                f"{key} = {toml_value(value)}" for key, value in values.items() if value is not None
            ]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        """Return a line for each method: its best score, its score as it is, what was found."""
        lines = []
        for name, best in self.best.items():
            usual = self.defaults[name]
            was = "not finite" if usual.score is None else f"{usual.score:.4f}"
            at = "" if usual.rounds == best.rounds else f" in round {usual.rounds}"
            values = " ".join(f"{key}={value}" for key, value in best.values.items())
            lines.append(
                f"{name:<12}{self.metric} {best.score:.4f} (as it is: {was}{at})"
                f"  {values or 'as it is'}"
            )
        return "\n".join(lines)


_NOT_SHARED = ("algorithm", "seed", "options")
"""What a method, or a comparison, has of its own."""


def _tuning_figure(found: Tuned) -> Figure:
    from coalitions.drawing.pictures import colour, new_figure, plain_style

    with plain_style():
        figure = new_figure(7, 1.4 + 0.45 * len(found.best))
        axes = figure.subplots()
        for place, (name, best) in enumerate(found.best.items()):
            for trial in found.trials:
                if trial.algorithm == name and trial.score is not None:
                    axes.plot(
                        trial.score, place, "o" if trial.number else "x", color=colour(place),
                        alpha=1.0 if trial.rounds == best.rounds else 0.3,
                    )  # fmt: skip
            assert best.score is not None
            axes.plot(best.score, place, "o", markersize=12, fillstyle="none", color=colour(place))
        axes.set_yticks(range(len(found.best)), list(found.best))
        axes.set_ylim(len(found.best) - 0.5, -0.5)  # the first method is on top
        axes.set_xlabel(f"{found.metric} on held-out training data")
        axes.grid(axis="x", alpha=0.3)
    return figure


@with_keywords()
def tune(
    config: Mapping[str, Any] | RunConfig | str | Path | None = None,
    out: str | Path | None = None,
    *,
    algorithms: str | Sequence[str] | None = None,
    trials: int = 9,
    strategy: Strategy = "random",
    space: Mapping[str, str | Sequence[Any]] | None = None,
    seeds: int | str | Sequence[int] = 2,
    search_seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | None = None,
    jobs: int = 1,
    data: Clients | FederatedData | None = None,
    model: Factory | None = None,
    loss: str | LossFunction | None = None,
    metrics: Sequence[str | OwnMetric] = (),
    target: str | None = None,
    client_column: str | None = None,
    watch: CellWatch | None = None,
) -> Tuned:
    """Return good options of several methods, searched with the same budget for each.

    Models are scored on a fifth of each client's training data, which is held out: test data stay
    unseen. With `out`, the same call continues where it was interrupted.

    Parameters
    ----------
    config
        Settings of all runs, see `RunConfig`. If it names an algorithm, that is searched; its
        options hold in all trials.
    out
        Folder of the runs; None keeps nothing.
    algorithms
        Methods by name.
    trials
        Trials of each method; the first is the method as it is.
    strategy
        ``"random"`` gives every trial all rounds. ``"halving"`` gives all of them few rounds, the
        best third three times as many, and so on.
    space
        What to search: ``"0.1..0.9"``, or a list of values, by ``"ALGORITHM.OPTION"`` for one
        method or by ``"OPTION"`` for all that have it. The learning rate and the method's numbers
        unless given.
    seeds
        How many seeds to tune on, from 1000 on, or which ones. Report others.
    search_seed
        Seed of the points that are drawn.
    options
        Options and settings that are not searched, by method.
    by
        The metric to optimise; the first metric of the runs if None.
    jobs
        Runs at a time, each a process with one thread; 0 for one on each core.
    data, model, loss, metrics, target, client_column
        As for `run`, and the same for all runs.
    watch
        Is told how far the runs are.

    Examples
    --------
    >>> settings = {"clients": 2, "rounds": 1, "train_size": 20, "workers": 1}
    >>> found = tune(settings, algorithms=["local"], trials=2, seeds=1, space={"lr": [0.1]})
    >>> found.settings["local"] in ({}, {"lr": 0.1})
    True
    """
    shared = given_settings(config)
    algorithm, own = shared.pop("algorithm", None), shared.pop("options", {})
    shared.pop("seed", None)
    if algorithms is None and algorithm is None:
        raise InvalidInputError("algorithms names at least one method, as in ['fedprox', 'ditto']")
    names = [algorithm] if algorithms is None else algorithms
    names = [names] if isinstance(names, str) else list(names)
    inputs = UserInputs(data, model, loss, tuple(metrics), target, client_column)
    by_seed = {seed: held_out_inputs(shared, inputs, seed) for seed in seeds_of(seeds, FIRST_SEED)}
    if data is not None:  # these are settings of tables, which are encoded now
        shared = {key: value for key, value in shared.items() if key not in TABLE_SETTINGS}
    search = search_of(
        shared,
        {name: (options or {}).get(name, {}) for name in names},
        [_space_line(key, values) for key, values in (space or {}).items()],
        seeds=list(by_seed),
        trials=trials,
        strategy=strategy,
        seed=search_seed,
        kept={algorithm: own},
    )
    carry = functools.partial(tried_cells, jobs=jobs, watch=watch)
    folder = None if out is None else Path(out)
    return searched(replace(search, inputs=by_seed), folder, metric=by, carry=carry)


def _space_line(target: str, values: str | Sequence[Any]) -> tuple[str, str, str]:
    text = values if isinstance(values, str) else ",".join(map(str, values))
    return read_space(f"{target}={text}")


TABLE_SETTINGS = (
    *("target", "client_column", "group_column", "schema", "share_statistics"),
    *("train_size", "test_size"),
)
"""Settings that say how a user's tables are encoded and split."""


def held_out_inputs(shared: Mapping[str, Any], inputs: UserInputs, seed: int) -> UserInputs:
    """Return what a user passed, with held-out training data in the place of the test data.

    Parameters
    ----------
    shared
        Settings of all runs.
    inputs
        What the user passed.
    seed
        Seed of the run.
    """
    if inputs.data is None:
        return inputs
    config = RunConfig.of({**shared, "seed": seed})
    apart = replace(config, validation_share=share_with_held_out(config))
    _, data = replace(inputs, model=None, loss=None, metrics=()).marked(apart)
    assert data is not None
    held_out = scored_on_held_out(data, config)
    return replace(inputs, data=held_out, target=None, client_column=None)


# ----------------------------------------------------------------------------------------
# Tuned options in a comparison.


def check_seeds(seeds: Sequence[int], tuned_on: Sequence[int]) -> None:
    """Raise if seeds are to be reported on which options were chosen."""
    for seed in seeds:
        if seed in tuned_on:
            raise InvalidInputError(
                f"seed {seed} is one that the options were tuned on; report other seeds"
            )


def not_tuned(rows: Sequence[Variant], tuned: Mapping[str, Any]) -> list[str]:
    """Return the rows that were not tuned while others were; none if none was."""
    names = [row.name.partition(".")[0] for row in rows]
    if not any(name in tuned for name in names):
        return []
    return [
        row.name
        for row, name in zip(rows, names, strict=True)
        if name not in tuned or row.algorithm != name
    ]


# ----------------------------------------------------------------------------------------
# The search.


def points(search: TuningSearch, last: LastData | None = None) -> dict[str, list[Trial]]:
    """Return the trials of each method; the same for the same seed, whatever else is searched.

    The first is the method as it is, so that what is found is no worse where it was measured.
    Points that a run would refuse are drawn again. All are held against the data of the first
    seed, which `last` keeps.
    """
    last = last or LastData()
    found = {}
    for algorithm, space in search.spaces.items():
        rng = generator(search.seed, "tuning", algorithm)
        trials = [Trial(algorithm, 0, {})]
        _completed(search, trials[0], last)  # raises if a run would refuse the method as it is
        while len(trials) < search.trials:
            trials.append(_drawn(search, algorithm, space, len(trials), rng, last))
        found[algorithm] = trials
    return found


def _drawn(
    search: TuningSearch,
    algorithm: str,
    space: Space,
    number: int,
    rng: Any,  # noqa: ANN401 (numpy's)
    last: LastData,
) -> Trial:
    refusal = None
    for _ in range(_ATTEMPTS):
        point = drawn(algorithm, space, rng, search.fixed.get(algorithm, {}))
        trial = Trial(algorithm, number, point)
        try:
            _completed(search, trial, last)
        except InvalidInputError as error:
            refusal = error
            continue
        return trial
    raise InvalidInputError(
        f"{algorithm}: {_ATTEMPTS} points of its space in a row cannot be run: {refusal}"
    )


def _completed(search: TuningSearch, trial: Trial, last: LastData) -> RunConfig:
    """Return the complete settings of a trial for the first seed."""
    variant = variant_of(trial.algorithm, trial.algorithm, search.values_of(trial))
    seed = search.numbers[0]
    inputs = search.inputs_of(seed)
    settings = {
        **search.shared,
        **variant.settings,
        "algorithm": variant.algorithm,
        "options": variant.options,
        "seed": seed,
        "evaluate_on": "validation" if inputs.data is None else "test",
    }
    run = checked(RunConfig.of(settings), inputs, last)
    say(run, None)
    return run.config


Carry = Callable[[Sequence[Cell]], Sequence[Result | NoSolutionError]]
"""How cells are carried out."""


def searched(
    search: TuningSearch,
    out: Path | None = None,
    *,
    metric: str | None = None,
    carry: Carry = tried_cells,
) -> Tuned:
    """Return what a search found.

    Parameters
    ----------
    search
        What is asked.
    out
        Folder of the runs, where an interrupted search goes on; None keeps nothing.
    metric
        What is searched for; what the runs are judged by if None.
    carry
        How cells are carried out, such as several at a time.
    """
    if search.trials < 2:
        raise InvalidInputError(f"a search needs 2 trials or more, not {search.trials}")
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInputError(f"{out} is a file; a search needs a folder")
    last = LastData()
    alive = points(search, last)
    history: list[Trial] = []
    for n_trials, rounds in search.rungs:
        alive = {name: _ranked(trials)[:n_trials] for name, trials in alive.items()}
        racing = [replace(trial, rounds=rounds) for trials in alive.values() for trial in trials]
        configs = [_completed(search, trial, last) for trial in racing]
        # Seed by seed: all runs of a seed have the same data.
        cells = [
            _cell(search, trial, config, seed, out, last)
            for seed in search.numbers
            for trial, config in zip(racing, configs, strict=True)
        ]
        outcomes = list(carry(cells))
        metric = metric or _metric_of(outcomes)
        scored = [
            _scored(trial, outcomes[k :: len(racing)], metric) for k, trial in enumerate(racing)
        ]
        history += scored
        alive = {name: [each for each in scored if each.algorithm == name] for name in alive}
    best = {name: _ranked(trials)[0] for name, trials in alive.items()}
    for name, trial in best.items():
        if trial.score is None:
            raise InvalidInputError(
                f"{name}: training stayed finite in no trial; give --space lr=… with smaller values"
            )
    # Without the user's data and network: what comes out can be pickled.
    return Tuned(metric or "", tuple(history), best, replace(search, inputs={}))


def _ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials, best first; of equals, the earlier one."""
    return sorted(trials, key=lambda trial: (-trial.gain, trial.number))


def _cell(
    search: TuningSearch,
    trial: Trial,
    config: RunConfig,
    seed: int,
    out: Path | None,
    last: LastData,
) -> Cell:
    """Return a run of a trial; another seed holds out other data."""
    name = f"{trial.algorithm}-trial{trial.number}-rounds{trial.rounds}"
    inputs = search.inputs_of(seed)
    config = replace(config, rounds=trial.rounds, evaluate_every=trial.rounds)
    return planned_cell(
        name,
        config if seed == config.seed else with_seed(config, seed, inputs, last),
        None if out is None else out / f"{name}-seed{seed}",
        inputs=inputs,
        last=last,
    )


def _metric_of(outcomes: Sequence[Result | NoSolutionError]) -> str | None:
    for each in outcomes:
        if isinstance(each, Result):
            return main_metric(each.to_dict())
    return None


def _scored(
    trial: Trial, outcomes: Sequence[Result | NoSolutionError], metric: str | None
) -> Trial:
    results = [each for each in outcomes if isinstance(each, Result)]
    if len(results) < len(outcomes) or metric is None:
        return trial
    scores = [score_of(result.to_dict(), metric) for result in results]
    mean = math.fsum(score.mean for score in scores) / len(scores)
    return replace(trial, score=mean, gain=-mean if scores[0].lower_is_better else mean)
