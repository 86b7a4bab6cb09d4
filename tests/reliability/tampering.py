"""Ways to tamper with a certificate: some claim what is false, the rest may or may not.

A tampering changes the certificate's document in place. Those of `FALSE` claim a bound below the
optimum, a structure that is worth more, or demands that the caller did not make: each must be
refused. Those of `ODD` damage the proof: one that is accepted must still prove a right bound.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from coalitions import CoalitionStructure, InvalidInputError, SynergyGraph
from solvers import Certificate, verify
from tests.reliability.reference import exact_value, meets, positive_sum

Document = dict[str, Any]
Rng = np.random.Generator

LONGEST = 5.0
"""Seconds after which a verification of a small certificate counts as hanging."""


class NotApplicable(Exception):  # noqa: N818 (no error: the next one is tried)
    """The certificate has nothing of the kind that is tampered with."""


@dataclass(frozen=True)
class Subject:
    """A proven structure: what is tampered with.

    Attributes
    ----------
    name
        Where it comes from.
    graph, structure
        The graph and its best structure.
    links
        The demands of the caller.
    document
        The honest certificate as JSON.
    optimum
        Nothing that meets the demands is worth more.
    """

    name: str
    graph: SynergyGraph
    structure: CoalitionStructure
    links: dict[str, Any]
    document: Document
    optimum: Fraction


@dataclass(frozen=True)
class Outcome:
    """What became of a tampered certificate: "refused", "still right", or something bad."""

    tampering: str
    result: str
    detail: str = ""

    @property
    def bad(self) -> bool:
        """Whether the verifier was fooled, or fell over."""
        return self.result not in ("refused", "still right")


def judged(
    name: str,
    subject: Subject,
    document: Document | str,
    *,
    false: bool,
    graph: SynergyGraph | None = None,
    optimum: Fraction | None = None,
    structure: CoalitionStructure | None = None,
) -> Outcome:
    """Return what the verifier makes of a document for a graph whose optimum is known."""
    graph = graph or subject.graph
    optimum = subject.optimum if optimum is None else optimum
    structure = structure or subject.structure
    started = time.monotonic()
    try:
        parsed = json.loads(document) if isinstance(document, str) else document
        checked = verify(graph, structure, Certificate.from_json(parsed), **subject.links)
    except InvalidInputError:
        result, detail = "refused", ""
    except Exception as error:  # whatever else ends it is a defect
        result, detail = "crash", repr(error)
    else:
        assert checked.bound is not None
        detail = f"bound {checked.bound!r}, optimum {float(optimum)!r}, optimal {checked.optimal}"
        short = optimum - exact_value(graph, structure)
        if not meets(structure, **subject.links):
            result = "demand broken"
        elif Fraction(checked.bound) < optimum:
            result = "bound below the optimum"
        elif checked.optimal and short > positive_sum(graph) / 10**9:
            result = "called optimal, is not"
        else:
            result = "false claim accepted" if false else "still right"
    if time.monotonic() - started > LONGEST:
        result = "hangs"
    return Outcome(name, result, f"{subject.name}: {detail}" if detail else "")


def _some_part(document: Document, rng: Rng, which: Callable[[Document], bool]) -> Document:
    found = [part for part in document["parts"] if which(part)]
    if not found:
        raise NotApplicable
    return found[rng.integers(len(found))]


def _stages(part: Document) -> list[Document]:
    return [stage for branch in part["tree"] for stage in branch["stages"]]


def _has_multipliers(part: Document) -> bool:
    return any(stage["values"] for stage in _stages(part))


def _some_stage(document: Document, rng: Rng) -> Document:
    part = _some_part(document, rng, _has_multipliers)
    stages = [stage for stage in _stages(part) if stage["values"]]
    return stages[rng.integers(len(stages))]


def _units(subject: Subject, part: Document) -> int:
    """Return more units of a part than all tolerances on the graph together."""
    allowed = positive_sum(subject.graph) / 10**8
    return math.ceil(allowed / Fraction(*part["unit"])) + 1


# --- built to be false -----------------------------------------------------------------------


def bound_lowered(subject: Subject, document: Document, rng: Rng) -> None:
    part = _some_part(document, rng, lambda part: True)
    part["bound"] = min(part["bound"], part["value"]) - _units(subject, part)


def bound_and_value_lowered(subject: Subject, document: Document, rng: Rng) -> None:
    part = _some_part(document, rng, lambda part: True)
    part["bound"] = min(part["bound"], part["value"]) - _units(subject, part)
    part["value"] = part["bound"]


def bound_far_below(subject: Subject, document: Document, rng: Rng) -> None:
    part = _some_part(document, rng, lambda part: True)
    part["bound"] = part["value"] = -(10 ** int(rng.integers(20, 400)))


def bound_lowered_multiplier_raised(subject: Subject, document: Document, rng: Rng) -> None:
    part = _some_part(document, rng, _has_multipliers)
    part["bound"] = min(part["bound"], part["value"]) - _units(subject, part)
    for stage in _stages(part):
        raised = int(rng.choice([1, 2**20, 2**40, 2**61]))
        stage["values"] = [min(y + raised, 2**62 - 1) for y in stage["values"]]


def bound_lowered_multipliers_repeated(subject: Subject, document: Document, rng: Rng) -> None:
    """Lower the bound and make sums of multipliers pass 2^63."""
    part = _some_part(document, rng, _has_multipliers)
    part["bound"] = min(part["bound"], part["value"]) - _units(subject, part)
    for stage in _stages(part):
        if stage["rows"]:
            stage["rows"] = stage["rows"][:1] * 8
            stage["values"] = [2**61] * 8


def multipliers_raised(subject: Subject, document: Document, rng: Rng) -> None:
    """Raise all multipliers of a proof that needs them by more than all weights together."""
    part = _some_part(document, rng, _has_multipliers)
    honest = copy.deepcopy(part["tree"])
    for stage in _stages(part):
        # Not taken away: a stage without multipliers decides pairs, too.
        stage["values"] = [0] * len(stage["values"])
    if judged("", subject, document, false=False).result != "refused":
        raise NotApplicable
    part["tree"] = honest
    weights = sum(map(Fraction, np.abs(subject.graph.edges.weight).tolist()))
    enough = math.ceil(4 * weights / Fraction(*part["unit"]))
    for stage in _stages(part):
        raised = enough << max(0, stage["bits"])
        # Different ones, so that two triangles do not cancel each other.
        stage["values"] = [y + int(raised * (1 + rng.random())) for y in stage["values"]]


def bound_lowered_leaf_dropped(subject: Subject, document: Document, rng: Rng) -> None:
    part = _some_part(document, rng, lambda part: True)
    part["bound"] = min(part["bound"], part["value"]) - _units(subject, part)
    part["tree"].pop()


def leaf_dropped(subject: Subject, document: Document, rng: Rng) -> None:
    _some_part(document, rng, lambda part: True)["tree"].pop()


def leaf_emptied(subject: Subject, document: Document, rng: Rng) -> None:
    """Take the bound's proof away: no stages, no cases, and a bound one unit too low."""
    part = _some_part(document, rng, lambda part: True)
    part["bound"] = min(part["bound"], part["value"]) - _units(subject, part)
    part["tree"] = [{"stages": []}]


def value_raised(subject: Subject, document: Document, rng: Rng) -> None:
    part = _some_part(document, rng, lambda part: True)
    part["value"] = max(part["bound"], part["value"]) + _units(subject, part)


def unit_halved(subject: Subject, document: Document, rng: Rng) -> None:
    """Halve every unit: what is claimed is half of the optimum."""
    if all(part["bound"] <= _units(subject, part) for part in document["parts"]):
        raise NotApplicable
    for part in document["parts"]:
        if part["bound"] > 0:
            part["unit"][1] *= 2


def demand_added(subject: Subject, document: Document, rng: Rng) -> None:
    """Forbid a pair that the caller does not forbid."""
    document["cannot_link"].append(_new_pair(subject, rng))


def togetherness_added(subject: Subject, document: Document, rng: Rng) -> None:
    """Demand a pair that the caller does not demand."""
    document["must_link"].append(_new_pair(subject, rng))


def demands_dropped(subject: Subject, document: Document, rng: Rng) -> None:
    """Leave out what the caller demands: a proof of something else."""
    if not document["must_link"] and not document["cannot_link"]:
        raise NotApplicable
    if not document["must_link"] or (document["cannot_link"] and rng.random() < 0.5):
        document["cannot_link"] = []
    else:
        document["must_link"] = []


def _new_pair(subject: Subject, rng: Rng) -> list[int]:
    """Return a pair whose addition changes what the caller demands."""
    n = subject.graph.n_players
    group = list(range(n))
    for a, b in subject.links.get("must_link", ()):
        old, new = group[a], group[b]
        group = [new if g == old else g for g in group]
    apart = {frozenset((group[a], group[b])) for a, b in subject.links.get("cannot_link", ())}
    free = [
        [a, b]
        for a, b in itertools.combinations(range(n), 2)
        if group[a] != group[b] and frozenset((group[a], group[b])) not in apart
    ]
    if not free:
        raise NotApplicable
    return free[rng.integers(len(free))]


FALSE = (
    bound_lowered,
    bound_and_value_lowered,
    bound_far_below,
    bound_lowered_multiplier_raised,
    bound_lowered_multipliers_repeated,
    multipliers_raised,
    bound_lowered_leaf_dropped,
    leaf_dropped,
    leaf_emptied,
    value_raised,
    unit_halved,
    demand_added,
    togetherness_added,
)

# --- damage: refused, or still a right proof --------------------------------------------------


def bound_one_unit_lower(subject: Subject, document: Document, rng: Rng) -> None:
    _some_part(document, rng, lambda part: True)["bound"] -= 1


def multiplier_raised(subject: Subject, document: Document, rng: Rng) -> None:
    stage = _some_stage(document, rng)
    k = rng.integers(len(stage["values"]))
    stage["values"][k] += int(rng.choice([1, 2**10, 2**30, 2**60]))


def multiplier_negative(subject: Subject, document: Document, rng: Rng) -> None:
    stage = _some_stage(document, rng)
    k = rng.integers(len(stage["values"]))
    stage["values"][k] = -stage["values"][k] - 1


def bits_changed(subject: Subject, document: Document, rng: Rng) -> None:
    stage = _some_stage(document, rng)
    stage["bits"] = int(rng.choice([-1, 0, stage["bits"] + 1, 62, 64, 65, 10**6]))


def row_changed(subject: Subject, document: Document, rng: Rng) -> None:
    stage = _some_stage(document, rng)
    stage["rows"][rng.integers(len(stage["rows"]))] = int(rng.integers(-1, 40))


def unit_scaled(subject: Subject, document: Document, rng: Rng) -> None:
    part = _some_part(document, rng, lambda part: True)
    part["unit"][rng.integers(2)] *= int(rng.choice([-1, 0, 2, 3, 1000, 10**30]))


def node_list_changed(subject: Subject, document: Document, rng: Rng) -> None:
    part = _some_part(document, rng, lambda part: bool(part["nodes"]))
    nodes, k = part["nodes"], rng.integers(len(part["nodes"]))
    n = subject.graph.n_players
    change = rng.integers(4)
    if change == 0:
        del nodes[k]
    elif change == 1:
        nodes[k] = [int(rng.integers(-1, n + 1))]
    elif change == 2:
        nodes.reverse()
    else:
        nodes[k] = [*nodes[k], int(rng.integers(n))]


def tree_changed(subject: Subject, document: Document, rng: Rng) -> None:
    part = _some_part(document, rng, lambda part: len(part["tree"]) > 1)
    inner = [branch for branch in part["tree"] if "pair" in branch]
    branch = inner[rng.integers(len(inner))]
    case = str(rng.choice(["together", "apart"]))
    branch[case] = int(rng.integers(-1, len(part["tree"]) + 1))


def triangle_replaced(subject: Subject, document: Document, rng: Rng) -> None:
    part = _some_part(document, rng, lambda part: bool(part["triangles"]))
    k = rng.integers(len(part["triangles"]))
    part["triangles"][k] = rng.integers(-1, len(part["nodes"]) + 1, 3).tolist()


def sides_changed(subject: Subject, document: Document, rng: Rng) -> None:
    part = _some_part(document, rng, lambda part: "heads" in part)
    k = rng.integers(len(part["heads"]))
    part["heads"][k] = int(rng.choice([part["heads"][k] - 1, part["heads"][k] + 1, -1, 2**40]))


def merger_added(subject: Subject, document: Document, rng: Rng) -> None:
    part = _some_part(document, rng, lambda part: len(part["nodes"]) > 1)
    pair = rng.choice(len(part["nodes"]), 2, replace=False).tolist()
    part["merges"].insert(int(rng.integers(len(part["merges"]) + 1)), pair)


def number_changed(subject: Subject, document: Document, rng: Rng) -> None:
    """Change one number anywhere."""
    places = list(_numbers(document))
    holder, key = places[rng.integers(len(places))]
    old = holder[key]
    others = [old + 1, old - 1, -old, 2 * old, 0, -1, 10**9, 2**62, 2**63, 10**400, 0.5, "1", None]
    holder[key] = others[rng.integers(len(others))]


def _numbers(document: Any) -> Iterator[tuple[Any, Any]]:  # any JSON
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        if isinstance(value, dict | list):
            yield from _numbers(value)
        elif isinstance(value, int):
            yield document, key


ODD = (
    demands_dropped,
    bound_one_unit_lower,
    multiplier_raised,
    multiplier_negative,
    bits_changed,
    row_changed,
    unit_scaled,
    node_list_changed,
    tree_changed,
    triangle_replaced,
    sides_changed,
    merger_added,
    number_changed,
)


def tampered(subject: Subject, rng: Rng) -> Iterator[Outcome]:
    """Yield what becomes of the subject's certificate in each way to tamper with it."""
    for change in (*FALSE, *ODD):
        document = copy.deepcopy(subject.document)
        try:
            change(subject, document, rng)
        except NotApplicable:
            continue
        yield judged(change.__name__, subject, document, false=change in FALSE)
    yield from _everything_forbidden(subject)
    yield from _other_demands(subject, rng)
    yield from _other_bytes(subject, rng)
    yield from _other_graph(subject, rng)
    yield from _other_structure(subject, rng)


def _everything_forbidden(subject: Subject) -> Iterator[Outcome]:
    """Forbid all pairs and prove nothing: then everybody's being alone is the best."""
    n = subject.graph.n_players
    forbidden = [[a, b] for a in range(n) for b in range(a)]
    if len(set(map(frozenset, subject.links.get("cannot_link", ())))) == len(forbidden):
        return  # that is what the caller demands
    document = {**subject.document, "cannot_link": forbidden, "parts": []}
    alone = CoalitionStructure.from_labels(range(n))
    yield judged("everything_forbidden", subject, document, false=True, structure=alone)


def _other_demands(subject: Subject, rng: Rng) -> Iterator[Outcome]:
    """Present an honest certificate to somebody who demands less, or more."""
    name = "caller_demands_other_things"
    if any(subject.links.values()):
        freed = replace(subject, links={})
        yield judged(name, freed, subject.document, false=True, optimum=subject.optimum)
    try:
        pair = _new_pair(subject, rng)
    except NotApplicable:
        return
    labels = subject.structure.labels
    kind = "must_link" if labels[pair[0]] == labels[pair[1]] else "cannot_link"
    more = {**subject.links, kind: (*subject.links.get(kind, ()), tuple(pair))}
    yield judged(name, replace(subject, links=more), subject.document, false=True)


def _other_bytes(subject: Subject, rng: Rng) -> Iterator[Outcome]:
    """Change a character of the file, as `Certificate.read` would see it."""
    text = json.dumps(subject.document)
    k = int(rng.integers(len(text)))
    text = text[:k] + str(rng.choice(list('0123456789-,[]{}":e.'))) + text[k + 1 :]
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        yield Outcome("character_changed", "refused")
    else:
        yield judged("character_changed", subject, document, false=False)


def _other_graph(subject: Subject, rng: Rng) -> Iterator[Outcome]:
    """Give a pair that is apart a synergy that changes everything, or one that changes little."""
    labels = subject.structure.labels
    matrix = subject.graph.matrix.copy()
    groups = {(a, b) for a, b in itertools.combinations(range(len(labels)), 2)}
    apart = [(a, b) for a, b in sorted(groups) if labels[a] != labels[b]]
    inside = [(a, b) for a, b in sorted(groups) if labels[a] == labels[b]]
    # Worth more by itself than everything else: the certificate's bound is too low there.
    if apart and not subject.links.get("cannot_link"):
        a, b = apart[rng.integers(len(apart))]
        richer = matrix.copy()
        richer[a, b] = richer[b, a] = 2 * float(np.abs(matrix).sum()) + 1.0
        graph = SynergyGraph(richer)
        least = max(exact_value(graph, s) for s in (_pair_joined(subject.structure, a, b),))
        yield judged(
            "graph_with_a_richer_pair",
            subject,
            subject.document,
            false=True,
            graph=graph,
            optimum=least,
        )
    if inside:
        a, b = inside[rng.integers(len(inside))]
        richer = matrix.copy()
        richer[a, b] = richer[b, a] = matrix[a, b] + max(1.0, float(np.abs(matrix).max()))
        graph = SynergyGraph(richer)
        yield judged(
            "graph_with_a_closer_pair",
            subject,
            subject.document,
            false=False,
            graph=graph,
            optimum=exact_value(graph, subject.structure),
        )


def _pair_joined(structure: CoalitionStructure, a: int, b: int) -> CoalitionStructure:
    labels = structure.labels.copy()
    labels[labels == labels[b]] = labels[a]
    return CoalitionStructure.from_labels(labels)


def _other_structure(subject: Subject, rng: Rng) -> Iterator[Outcome]:
    """Present the honest certificate for another structure."""
    n = subject.graph.n_players
    labels = rng.integers(0, n, n)
    structure = CoalitionStructure.from_labels(labels)
    yield judged("structure_replaced", subject, subject.document, false=False, structure=structure)
