"""Options of methods and settings of runs as a table: type, default, range, meaning, effect."""

from __future__ import annotations

import inspect
import math
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal

from coalitions.errors import InvalidInputError, shown, with_keywords
from learners.settings.conversion import (
    LARGEST,
    LARGEST_WHOLE,
    Range,
    is_table,
    spoken,
    without_none,
)

# ----------------------------------------------------------------------------------------
# Descriptions of fields, read from docstrings.

_GREEK = dict(
    alpha="α", beta="β", gamma="γ", delta="δ", epsilon="ε", lam="λ", eta="η", theta="θ", xi="ξ",
    sigma="σ", tau="τ", phi="φ", varphi="φ", psi="ψ", sqrt="√", ne="≠",
)  # fmt: skip
_GREEK["lambda"] = _GREEK.pop("lam")


def described(kind: type) -> dict[str, str]:
    """Return what a class's docstring says about its fields, by name, without mark-up.

    The sections Parameters and Attributes are read, numpy style; an entry may have several names.
    """
    texts: dict[str, str] = {}
    lines = inspect.cleandoc(kind.__doc__ or "").splitlines()
    heading = ""
    names: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if following and set(following) == {"-"}:
            heading, names = line.strip(), []
        elif heading in ("Parameters", "Attributes") and set(line) != {"-"}:
            if line and not line.startswith(" "):
                names = [name.strip() for name in line.split(",")]
                texts |= dict.fromkeys(names, "")
            for name in names if line.startswith(" ") else ():
                texts[name] = f"{texts[name]} {line.strip()}".strip()
    return {name: plain(text) for name, text in texts.items()}


def plain(text: str) -> str:
    r"""Return a docstring's text without mark-up: no roles and citations, formulas as letters.

    Examples
    --------
    >>> plain(r"``fo``: the step :math:`1 / (\lambda + 1/\text{lr})` of `lr` [Wu2024]_.")
    'fo: the step 1 / (λ + 1/lr) of lr.'
    >>> plain(r"the distance :math:`\lVert w_i - w_j \rVert`")
    'the distance ‖w_i - w_j‖'
    """

    def formula(match: re.Match[str]) -> str:
        letters = re.sub(r"\\text\{(\w+)\}", r"\1", match[1])
        letters = re.sub(r"\\lVert\s*|\s*\\rVert", "‖", letters)
        letters = re.sub(r"\\([a-z]+)", lambda name: _GREEK.get(name[1], name[1]), letters)
        return re.sub(r"[{}\\]", "", letters)

    text = re.sub(r":math:`([^`]*)`", formula, text)
    text = re.sub(r"``?([^`]*)``?", r"\1", text)
    return re.sub(r" \[\w+\]_", "", text)


# ----------------------------------------------------------------------------------------
# Options as a table: type, default, range, meaning, and what each one changes.
#
# The settings of a run and the options of a method are fields of dataclasses. A field says by
# `option` what it may be and what it changes; its class's docstring says what it means. Flags,
# the check of values, the reference (docs/options.md) and the test that no option does nothing
# are all made from this one table.

OBSERVABLES = {
    "models": "the clients' models: `models/`",
    "data": "what clients have: `clients.json`",
    "scores": "test accuracies and losses: `metrics.jsonl`",
    "rounds": "the number of lines of `metrics.jsonl`",
    "participants": "`participants` in `metrics.jsonl`",
    "evaluations": "which lines of `metrics.jsonl` have accuracies",
    "traffic": "`communication` in `result.json`",
    "relevance": "who is relevant to whom: `relevance.npy`",
    "structure": "the coalitions: `structures.jsonl`",
    "solver": "`structure_solver` in `metrics.jsonl`",
    "proof": "`structure_optimal` in `metrics.jsonl`",
    "epsilon": "`epsilon` in `result.json`",
    "place": "where it was computed: `environment.json`",
    "checkpoints": "which rounds leave a checkpoint: `checkpoints/`",
    "names": "which names are known",
}
"""What an option can change, and where that is seen."""


@dataclass(frozen=True)
class _Facts:
    """What a field says about its option beyond its type and default."""

    changes: str
    range: Range | None = None
    needs: Mapping[str, object] = field(default_factory=dict)
    names: str | None = None
    group: str = ""
    unset: str = ""


@with_keywords()
def option(
    default: object,
    *,
    changes: str,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    needs: Mapping[str, object] | None = None,
    names: str | None = None,
    group: str = "",
    unset: str = "",
) -> Any:  # noqa: ANN401 (a default of any type, as of dataclasses.field)
    """Return a dataclass field that is an option.

    Parameters
    ----------
    default
        Its default.
    changes
        What it changes: a key of `OBSERVABLES`.
    least, above, most, below
        Its range, if it is a number.
    needs
        What other options must be for this one to have a say: a value, or a tuple of values.
    names
        The command that lists what it can be, if that is a name: ``algorithms``, ``datasets`` …
    group
        Heading it is listed under.
    unset
        What happens if it is None, in a few words.
    """
    assert changes in OBSERVABLES, changes
    limits = (least, above, most, below)
    range_ = None if limits == (None,) * 4 else Range(*limits)
    facts = _Facts(changes, range_, needs or {}, names, group, unset)
    return field(default=default, metadata={"option": facts})


@dataclass(frozen=True)
class Option:
    """A row of the table.

    Attributes
    ----------
    name
        Its name in TOML, and with dashes as a flag.
    hint
        Its type.
    default
        Its default, None if it may be left open.
    range, choices
        The numbers, or the values, that it can be; None if that is not limited.
    help
        What it means.
    changes, needs, names, group, unset
        See `option`.
    """

    name: str
    hint: Any
    default: Any
    range: Range | None
    choices: tuple[Any, ...] | None
    help: str
    changes: str | None
    needs: Mapping[str, object]
    names: str | None
    group: str
    unset: str

    @property
    def kind(self) -> str:
        """Its type in words."""
        if self.choices is not None:
            return "one of " + ", ".join(map(str, self.choices))
        return spoken(self.hint)

    @property
    def summary(self) -> str:
        """The first sentence of its help."""
        return re.split(r"(?<=[a-z\d)”]\.) ", self.help)[0]

    def document(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return {
            "type": spoken(self.hint),
            "default": list(self.default) if isinstance(self.default, tuple) else self.default,
            "range": None if self.range is None else str(self.range),
            "choices": None if self.choices is None else list(self.choices),
            "needs": {key: list(_any_of(value)) for key, value in self.needs.items()},
            "changes": self.changes,
            "help": self.help,
        }


def options_of(kind: type) -> list[Option]:
    """Return the options of a dataclass, in order; fields that are tables are none."""
    return list(_options(kind))


def _options(kind: type) -> Iterator[Option]:
    hints, texts = typing.get_type_hints(kind), described(kind)
    for each in fields(kind):
        hint = hints[each.name]
        bare = without_none(hint)
        if is_table(bare):
            continue
        facts = each.metadata.get("option", _Facts(""))
        yield Option(
            name=each.name,
            hint=hint,
            default=None if each.default is MISSING else each.default,
            range=facts.range,
            choices=typing.get_args(bare) if typing.get_origin(bare) is Literal else None,
            help=texts.get(each.name, ""),
            changes=facts.changes or None,
            needs=facts.needs,
            names=facts.names,
            group=facts.group,
            unset=facts.unset,
        )


def check_options(instance: object, of: str = "") -> None:
    """Refuse a value outside its range, and one that the other options leave without effect.

    Parameters
    ----------
    instance
        A dataclass with options.
    of
        What follows the option's name in a message, such as `` of fedprox``.
    """
    for each in fields(instance):  # type: ignore[arg-type]
        facts, value = each.metadata.get("option"), getattr(instance, each.name)
        if facts is None or value is None:
            continue
        if facts.range is not None and value not in facts.range:
            raise InvalidInputError(
                f"{each.name}{of} must be {_demanded(facts.range)}, not {shown(value)}"
            )
        largest = LARGEST_WHOLE if isinstance(value, int) else LARGEST
        if isinstance(value, int | float) and largest < abs(value) < math.inf:
            raise InvalidInputError(
                f"{each.name}{of} can be {largest:g} at most, not {shown(value)}"
            )
        if isinstance(value, float) and math.isnan(value):
            raise InvalidInputError(f"{each.name}{of} must be a number, not {value}")
        if value == each.default:
            continue
        for name, wanted in facts.needs.items():
            if getattr(instance, name) not in _any_of(wanted):
                raise InvalidInputError(
                    f"{each.name}{of} has no effect unless {name} is"
                    f" {' or '.join(map(written, _any_of(wanted)))};"
                    f" it is {written(getattr(instance, name))}"
                )


def _demanded(range: Range) -> str:
    """Return a range as messages put it."""
    return "a positive number" if range == Range(above=0) else str(range)


def _any_of(wanted: object) -> tuple[object, ...]:
    return wanted if isinstance(wanted, tuple) else (wanted,)


def written(value: object) -> str:
    """Return a value as one types it after --set."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)
