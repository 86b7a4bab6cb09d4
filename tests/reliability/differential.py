"""Every solver on one graph against the exact optimum: what does not hold, by kind of failure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from coalitions import InvalidInputError
from solvers import SOLVERS, Certificate, Solution, available, solve, verify
from tests.reliability.graphs import Case, case
from tests.reliability.reference import exact_optimum, exact_value, meets, positive_sum

TOLERANCE = Fraction(1, 10**9)
"""What "optimal" leaves open, relative to the sum of the positive weights."""

MOST_ENUMERATED = 9
"""Players up to which `brute-force` takes its turn: 21 147 partitions."""


@dataclass(frozen=True)
class Method:
    """A way to call `solve`."""

    name: str
    solver: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def exact(self) -> bool:
        """Whether it must find the optimum."""
        return self.solver == "auto" or SOLVERS[self.solver].exact

    def takes(self, case: Case) -> bool:
        """Tell whether the graph is small enough for it."""
        return self.solver != "brute-force" or case.graph.n_players <= MOST_ENUMERATED


METHODS = {
    method.name: method
    for method in (
        Method("auto", "auto"),
        Method("certify", "branch-and-cut", (("certify", True),)),
        *(Method(name, name) for name, state in available().items() if state is True),
    )
}
"""All solvers that run here, and our own with the certificate made on the way."""


@dataclass(frozen=True)
class Failure:
    """What did not hold: enough to see it again."""

    seed: int
    kind: str
    method: str
    linked: bool
    failure: str
    detail: str

    def __str__(self) -> str:
        links = " with links" if self.linked else ""
        return (
            f"seed {self.seed} ({self.kind}){links}, {self.method}: {self.failure}: {self.detail}"
        )


class Tally:
    """How many solves and proofs were checked, and what failed."""

    def __init__(self) -> None:
        self.solves: Counter[str] = Counter()
        self.proofs: Counter[str] = Counter()
        self.failures: list[Failure] = []

    def add(self, method: Method, found: Iterable[Failure], *, proven: bool) -> None:
        """Count one solve."""
        self.solves[method.name] += 1
        self.proofs[method.name] += proven
        self.failures += found

    def counts(self) -> dict[str, dict[str, int]]:
        """Return for each method: solves, proofs, failures, and these by kind."""
        table = {
            name: {"solves": self.solves[name], "proofs": self.proofs[name], "failures": 0}
            for name in self.solves
        }
        for failure in self.failures:
            row = table[failure.method]
            row["failures"] += 1
            row[failure.failure] = row.get(failure.failure, 0) + 1
        return table


def check_all(
    seeds: Iterable[int], methods: Callable[[Case], Iterable[Method]], tally: Tally
) -> None:
    """Let each of the graphs be solved, without demands and with them, by the methods chosen."""
    for seed in seeds:
        subject = case(seed)
        chosen = [method for method in methods(subject) if method.takes(subject)]
        for linked in (False, True):
            optimum = exact_optimum(subject.graph, **(subject.links if linked else {}))
            for method in chosen:
                check(subject, method, linked, optimum, tally)


def check(
    subject: Case, method: Method, linked: bool, optimum: Fraction, tally: Tally | None = None
) -> list[Failure]:
    """Return what does not hold for one method on one graph."""
    links: dict[str, Any] = subject.links if linked else {}
    proof: Certificate | None = None
    found: list[tuple[str, str]] = []
    try:
        solution = solve(subject.graph, method.solver, **links, **dict(method.options))
        found += _wrong_answers(subject, method, links, solution, optimum)
        if method.solver == "branch-and-cut":
            proof = solution.certificate
            found += _wrong_proofs(subject, links, solution, proof, optimum)
    except Exception as error:  # whatever ends a solve is what we look for
        found.append(("crash", repr(error)))
    failures = [
        Failure(subject.seed, subject.kind, method.name, linked, what, detail)
        for what, detail in found
    ]
    if tally is not None:
        tally.add(method, failures, proven=proof is not None)
    return failures


def _wrong_answers(
    subject: Case, method: Method, links: dict[str, Any], solution: Solution, optimum: Fraction
) -> Iterator[tuple[str, str]]:
    """Yield what a solution says that is not so."""
    worth = exact_value(subject.graph, solution.structure)
    allowed = TOLERANCE * positive_sum(subject.graph)
    said = f"value {solution.value!r}, bound {solution.bound!r}, optimum {float(optimum)!r}"
    if not meets(solution.structure, **links):
        yield "demand broken", f"{solution.structure.coalitions} against {links}"
        return
    if solution.value != float(worth):
        yield "value is not the structure's", f"{said}, but the structure has {float(worth)!r}"
    if optimum - worth > allowed and (method.exact or solution.optimal):
        yield ("called optimal, is not" if solution.optimal else "not the best"), said
    elif method.exact and not solution.optimal:
        yield "not proven", said
    # The bound is a float, and so is the optimum it is held against: each is rounded once.
    if solution.bound < float(optimum):
        yield "bound below the optimum", said


def _wrong_proofs(
    subject: Case,
    links: dict[str, Any],
    solution: Solution,
    certificate: Certificate | None,
    optimum: Fraction,
) -> Iterator[tuple[str, str]]:
    """Yield why the verifier is not convinced of a solution by its certificate, or wrongly is."""
    if certificate is None:
        yield "no certificate", "there is none"
        return
    read = Certificate.from_json(json.loads(json.dumps(certificate.to_json())))
    try:
        checked = verify(subject.graph, solution.structure, read, **links)
    except InvalidInputError as error:
        yield "proof refused", str(error)
        return
    assert checked.bound is not None
    said = f"verified bound {checked.bound!r}, optimum {float(optimum)!r}"
    if Fraction(checked.bound) < optimum:
        yield "verified bound below the optimum", said
    if not checked.optimal:
        yield "proof does not convince", f"{said}, value {checked.value!r}"
