"""A comparison: methods and variants of methods, times seeds, as the runs to be made."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from coalitions.errors import InvalidInputError, did_you_mean, shown
from learners.algorithm import ALGORITHMS
from learners.experiments.resumable_runs import NO_INPUTS, Cell, planned_cell
from learners.runs.inputs import MARK, LastData, UserInputs
from learners.runs.prepare import checked
from learners.runs.run import say
from learners.settings.config import NO_EFFECT, RunConfig
from learners.settings.conversion import converted
from learners.settings.options import Option, options_of
from learners.settings.seeding import seeds_of

# ----------------------------------------------------------------------------------------
# What the rows of a comparison are: methods, each with the options and settings of its own.

SHARED = ("algorithm", "seed", "engine", "device", "compute", *NO_EFFECT)
"""Settings that no row has of its own."""

_NAME = re.compile(r"\w[\w .,=+@-]{0,79}")


@dataclass(frozen=True)
class Variant:
    """A row of a comparison.

    Attributes
    ----------
    name
        What its row and its folders are called.
    algorithm
        Its method.
    settings
        Settings of the run that are its own, such as the learning rate.
    options
        Options of the method.
    swept
        What a sweep gave it, by (who was swept, option), in words.
    """

    name: str
    algorithm: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    swept: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def own(self) -> dict[str, Any]:
        """All that was said of this row, options and settings alike."""
        return {**self.settings, **self.options}

    def given(self, key: str, value: Any) -> Variant:  # noqa: ANN401 (as it was typed)
        """Return the variant with one more option or setting, which it must not have yet."""
        place, name = place_of(self.algorithm, key, f"{self.name}: ")
        if name in self.own:
            raise InvalidInputError(
                f"{name} of {self.name} is given twice: {shown(self.own[name])} and {shown(value)}"
            )
        if place == "options":
            return replace(self, options={**self.options, name: value})
        return replace(self, settings={**self.settings, name: value})


def variant_of(name: str, algorithm: str, values: Mapping[str, Any]) -> Variant:
    """Return a variant whose values are sorted into options of its method and settings of the run.

    An option of the method goes before a setting of the same name.

    Examples
    --------
    >>> variant = variant_of("strong", "fedprox", {"mu": 1.0, "lr": 0.1})
    >>> variant.options, variant.settings
    ({'mu': 1.0}, {'lr': 0.1})
    """
    if not _NAME.fullmatch(name) or name != name.strip():
        raise InvalidInputError(
            f"a variant cannot be called {shown(name)}: its folder has its name, which is letters,"
            " digits, spaces and . , = + @ - _ , 80 at most, a letter or digit first"
        )
    ALGORITHMS[algorithm]
    if name != algorithm and name in ALGORITHMS:
        raise InvalidInputError(
            f"a variant of {algorithm} cannot be called {name}: that is another method"
        )
    variant = Variant(name, algorithm)
    for key, value in values.items():
        variant = variant.given(key, value)
    return variant


def read_variant(text: str) -> Variant:
    """Return the variant in a line such as ``cos: cffl synergy=cos lr=0.1``.

    Examples
    --------
    >>> read_variant("cos: cffl synergy=cos").options
    {'synergy': 'cos'}
    """
    name, colon, rest = text.partition(":")
    try:
        algorithm, *pairs = shlex.split(rest)
    except ValueError:  # no method, or a quote that is not closed
        algorithm, pairs = "", []
    if not colon or not algorithm or any("=" not in pair for pair in pairs):
        raise InvalidInputError(
            "--variant takes NAME: ALGORITHM OPTION=VALUE …, as in 'cos: cffl synergy=cos'; it got"
            f" {shown(text)}"
        )
    variant = variant_of(name.strip(), algorithm, {})
    for pair in pairs:
        key, _, value = pair.partition("=")
        variant = variant.given(key, value)
    return variant


def tabled_variants(tables: object) -> list[Variant]:
    """Return the variants of a file: ``[variants.NAME]`` has `algorithm`, options and settings."""
    if not isinstance(tables, Mapping):
        raise InvalidInputError(
            "variants are tables [variants.NAME], each with its algorithm and what is its own"
        )
    found = []
    for name, table in tables.items():
        if not isinstance(table, Mapping) or not isinstance(table.get("algorithm"), str):
            raise InvalidInputError(f'[variants.{name}] needs its method, as in algorithm = "cffl"')
        values = {key: value for key, value in table.items() if key != "algorithm"}
        found.append(variant_of(name, table["algorithm"], values))
    return found


def checked_rows(variants: Sequence[Variant]) -> list[Variant]:
    """Return the rows of a comparison, or say which name comes twice."""
    names = [variant.name for variant in variants]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"{name} comes twice; every row needs a name of its own")
    return list(variants)


def set_options(variants: Sequence[Variant], settings: Sequence[str]) -> list[Variant]:
    """Return the rows with what ``[NAME.]OPTION=VALUE`` gives to one, or to all that have it.

    A value for one row, by its name, goes before a value for all rows.
    """
    rows = {variant.name: variant for variant in variants}
    given: set[str] = set()
    shared = []
    for setting in settings:
        target, equals, value = setting.partition("=")
        name, _, option = target.rpartition(".")
        option = option.replace("-", "_")
        if not equals or not option or (name and name not in rows):
            raise InvalidInputError(
                "--set takes OPTION=VALUE, or NAME.OPTION=VALUE for one row of the comparison,"
                f" as in fedprox.mu=0.1; it got {shown(setting)}"
            )
        if target.replace("-", "_") in given:
            raise InvalidInputError(f"--set {target} is given twice; give it once")
        given.add(target.replace("-", "_"))
        if name:
            rows[name] = rows[name].given(option, value)
        else:
            shared.append((setting, option, value))
    for setting, option, value in shared:
        having = [row for row in rows.values() if option in method_options(row.algorithm)]
        if not having:
            raise InvalidInputError(
                f"--set {setting}: none of the methods has an option {option!r}"
            )
        for row in having:
            if option not in row.options:
                rows[row.name] = row.given(option, value)
    return list(rows.values())


@dataclass(frozen=True)
class Sweep:
    """An option, or a setting, and the values it takes in turn; `row` is empty for all rows."""

    row: str
    key: str
    values: tuple[Any, ...]


def sweep_of(target: str, values: Iterable[Any]) -> Sweep:
    """Return the sweep of ``NAME.KEY`` for one row, or of ``KEY`` for all rows.

    Examples
    --------
    >>> sweep_of("pfedsv.k", [2, 4])
    Sweep(row='pfedsv', key='k', values=(2, 4))
    """
    row, _, key = target.rpartition(".")
    taken = tuple(values)
    if not key or not taken:
        raise InvalidInputError(
            "a sweep names an option and its values, as in {'pfedsv.k': [2, 4, 8]}; it got"
            f" {shown(target)} and {shown(list(taken))}"
        )
    if len(set(map(str, taken))) < len(taken):
        raise InvalidInputError(f"the sweep of {target}: a value comes twice; give each once")
    return Sweep(row, key.replace("-", "_"), taken)


def read_sweep(text: str) -> Sweep:
    """Return the sweep in a text such as ``pfedsv.k=2,4,8``.

    Examples
    --------
    >>> read_sweep("pfedsv.k=2,4")
    Sweep(row='pfedsv', key='k', values=('2', '4'))
    """
    target, equals, values = text.partition("=")
    row, _, key = target.rpartition(".")
    taken = tuple(value.strip() for value in values.split(","))
    if not equals or not key or not all(taken):
        raise InvalidInputError(
            "--sweep takes NAME.OPTION=VALUE,VALUE,… for one row, or OPTION=VALUE,… for all, as in"
            f" pfedsv.k=2,4,8; it got {shown(text)}"
        )
    if len(set(taken)) < len(taken):
        raise InvalidInputError(f"--sweep {text}: a value comes twice; give each once")
    return Sweep(row, key.replace("-", "_"), taken)


def swept(variants: Sequence[Variant], sweeps: Sequence[Sweep]) -> list[Variant]:
    """Return the rows, each swept one replaced by its cells: the product of all its sweeps.

    A sweep of a method that has no row yet gives it one.

    Examples
    --------
    >>> [row.name for row in swept([], [read_sweep("ifca.k=2,3"), read_sweep("ifca.lr=0.1,1")])]
    ['ifca.k=2,lr=0.1', 'ifca.k=2,lr=1', 'ifca.k=3,lr=0.1', 'ifca.k=3,lr=1']
    """
    roots = {variant.name: [variant] for variant in variants}
    for number, sweep in enumerate(sweeps):
        if (sweep.row, sweep.key) in [(each.row, each.key) for each in sweeps[:number]]:
            raise InvalidInputError(f"--sweep of {sweep.key} is given twice; give it once")
        if sweep.row and sweep.row not in roots:
            if sweep.row not in ALGORITHMS:
                known = [*roots, *ALGORITHMS.names()]
                hint = did_you_mean(sweep.row, known)
                raise InvalidInputError(
                    f"--sweep {sweep.row}.{sweep.key}: there is no row or method {sweep.row!r};"
                    f" {hint}rows are: {', '.join(roots) or 'none'}"
                )
            roots[sweep.row] = [Variant(sweep.row, sweep.row)]
    for sweep in sweeps:
        for root in [sweep.row] if sweep.row else list(roots):
            roots[root] = [
                _cell(variant, root, sweep.key, value)
                for variant in roots[root]
                for value in sweep.values
            ]
    return [variant for cells in roots.values() for variant in cells]


def _cell(variant: Variant, root: str, key: str, value: Any) -> Variant:  # noqa: ANN401
    """Return a row with one swept value; its name is a folder's, so odd letters become dashes."""
    word = re.sub(r"[^\w.+@-]", "-", str(value))
    joint = "," if variant.swept else "."
    cell = variant.given(key, value)
    return replace(
        cell,
        name=f"{variant.name}{joint}{key}={word}",
        swept={**variant.swept, (root, key): str(value)},
    )


def method_options(algorithm: str) -> set[str]:
    """Return the names of a method's own options."""
    return {each.name for each in fields(ALGORITHMS[algorithm])}


def value_of(algorithm: str, key: str, text: str) -> Any:  # noqa: ANN401 (of any option)
    """Return the value of an option or setting that was typed."""
    row = row_of(algorithm, key)
    return converted(text, row.hint, row.name)


def row_of(algorithm: str, key: str) -> Option:
    """Return what is known of an option of a method, or of a setting of the run."""
    place, name = place_of(algorithm, key)
    kind: type = ALGORITHMS[algorithm] if place == "options" else RunConfig
    return next(each for each in options_of(kind) if each.name == name)


def place_of(algorithm: str, key: str, about: str = "") -> tuple[str, str]:
    """Return whether a key is among the ``options`` of a method or the ``settings`` of a run.

    Parameters
    ----------
    algorithm
        The method.
    key
        The name, with dashes or without.
    about
        What a complaint begins with.
    """
    name = key.replace("-", "_")
    options = method_options(algorithm)
    if name in options:
        return "options", name
    settings = [row.name for row in options_of(RunConfig)]
    if name in SHARED:
        raise InvalidInputError(f"{about}{name} is the same for all rows of a comparison")
    if name in settings:
        return "settings", name
    known = [*sorted(options), *(each for each in settings if each not in SHARED)]
    raise InvalidInputError(
        f"{about}{algorithm} has no option {shown(key)}, and a run no such setting;"
        f" {did_you_mean(name, known)}`coalitions options {algorithm}` lists its options"
    )


# ----------------------------------------------------------------------------------------
# Several methods on several seeds, kept in a folder where an interrupted comparison goes on.


def planned_runs(
    shared: Mapping[str, Any],
    variants: Sequence[Variant],
    seeds: int | Sequence[int],
    out: Path | None = None,
    *,
    force: bool = False,
    tell: Callable[[str], None] | None = None,
    inputs: UserInputs = NO_INPUTS,
) -> list[Cell]:
    """Return the runs of a comparison, seed by seed, so that early seeds are complete early.

    Everything is checked before the first run: settings a method cannot have, and folders of runs
    that were made with other settings.

    Parameters
    ----------
    shared
        Settings of all runs.
    variants
        The rows, each with what is its own; their names differ.
    seeds
        How many seeds, from 0 on, or which ones.
    out
        Folder that has, or will have, a folder ``NAME-seedN`` for each run; None keeps nothing.
    force
        Replace runs that were made with other settings.
    tell
        Called for each row with what there is to say of its data; see `learners.run`.
    inputs
        What the user passed beside the settings: data, a network, a loss, metrics.
    """
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInputError(f"{out} is a file; a comparison needs a folder")
    seeds, last = seeds_of(seeds), LastData()
    configs, domains = {}, {}
    for variant in variants:
        settings = {**shared, **variant.settings}
        try:
            if out is None:  # nobody will see the rounds before the last
                settings["evaluate_every"] = RunConfig.of(settings).rounds
            own = {"algorithm": variant.algorithm, "seed": seeds[0], "options": variant.options}
            configs[variant.name], domains[variant.name] = _completed(
                settings | own, tell, inputs, last
            )
        except InvalidInputError as error:
            if variant.name == variant.algorithm:
                raise
            raise InvalidInputError(f"{variant.name}: {error}") from None
    return [
        planned_cell(
            variant.name,
            with_seed(configs[variant.name], seed, inputs, last),
            None if out is None else out / f"{variant.name}-seed{seed}",
            force=force,
            domains=domains[variant.name],
            inputs=inputs,
            last=last,
        )
        for seed in seeds
        for variant in variants
    ]


def _completed(
    settings: Mapping[str, Any],
    tell: Callable[[str], None] | None,
    inputs: UserInputs,
    last: LastData,
) -> tuple[RunConfig, tuple[str, ...]]:
    """Return complete settings, and the clients' domains, which no seed changes."""
    run = checked(RunConfig.of(settings), inputs, last)
    say(run, tell)
    return run.config, run.domains


def with_seed(config: RunConfig, seed: int, inputs: UserInputs, last: LastData) -> RunConfig:
    """Return complete settings with another seed.

    A seed may choose the test rows of a user's table, so the checksum of the data changes with it.
    """
    if seed == config.seed or inputs.data is None:
        return replace(config, seed=seed)
    name = config.dataset.partition(MARK)[0]
    return inputs.marked(replace(config, seed=seed, dataset=name), last)[0]


def poisoned_clients(demands: Iterable[str]) -> set[int]:
    """Return the clients that (checked) demands such as ``noise:1,2`` poison."""
    return {int(c) for demand in demands for c in demand.rpartition(":")[2].split(",")}
