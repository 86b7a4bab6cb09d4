"""The page of what leaves a site is what the tasks declare, and methods ask for nothing else.

`python -m tests.learners.test_what_leaves` writes it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from coalitions.errors import InvalidInputError
from learners.algorithm import ALGORITHMS, build_algorithm
from learners.settings.options import options_of
from learners.task import TASKS, Reveals
from tests.learners import tiny

PAGE = Path(__file__).resolve().parents[2] / "docs" / "what-leaves.md"

COLUMNS = {
    Reveals.MODEL: "models",
    Reveals.STATISTIC: "tensors of the training data",
    Reveals.METRIC: "numbers of the training data",
    Reveals.HELD_OUT: "numbers of the validation data",
    Reveals.PROGRESS: "to watch",
    Reveals.SIZE: "sizes",
}

HEAD = """# What leaves a site

Made from what each task declares (`Reveals`, `learners/task.py`) by
`python -m tests.learners.test_what_leaves`; a test compares. An entry that is not declared does not
leave: the client's side refuses it.

An entry is `NAME` of the task in parentheses. This is the most that a reply may have; a method may
leave entries out, as `local` does with its model. Training and test examples are in no reply.

| kind | what it says about the data |
|---|---|
"""

TABLE = """
The row *every method* is what any run asks for beside its method: how large and of which labels
the data is, how good the models are on the site's own test data, and at the end the model that the
site would use, for the run's folder.

**Differential privacy does not cover that row.** Noise is added to what methods ask for: their
models get it before they leave, training losses stay, and methods with tensors or numbers of the
training data are refused ([privacy](privacy.md)). The final model of a run with `--dp updates`
leaves without noise. A site that needs ε against the SuperLink's owner must hold its own app
against these tasks.

"""


def variants():
    """Return the methods by what the page calls them, with the options that change their tasks."""
    found = {}
    for name in sorted(ALGORITHMS):
        usual = build_algorithm(name, {})
        found[f"`{name}`"] = usual.traits.asks
        for option in options_of(type(usual)):
            for choice in option.choices or ():
                try:
                    asks = build_algorithm(name, {option.name: choice}).traits.asks
                except InvalidInputError:  # it goes only with another option
                    continue
                if asks != usual.traits.asks:
                    found[f"`{name}`, `{option.name}={choice}`"] = asks
    return found


def watching():
    return tuple(sorted(name for name in TASKS if TASKS[name].watches))


def page():
    """Return the page."""
    lines = [f"| {words} | {reveals.value} |\n" for reveals, words in COLUMNS.items()]
    header = ["method", *COLUMNS.values()]
    table = [f"| {' | '.join(header)} |\n", f"|{'---|' * len(header)}\n"]
    for name, asks in {"every method": watching(), **variants()}.items():
        cells = [", ".join(_entries(asks, reveals)) for reveals in COLUMNS]
        table.append(f"| {' | '.join([name, *cells])} |\n")
    return HEAD + "".join(lines) + TABLE + "".join(table)


def _entries(asks, reveals):
    for task in asks:
        names = [f"`{name}`" for name, what in TASKS[task].reply.items() if what is reveals]
        if names:
            yield f"{', '.join(names)} ({task})"


def test_the_page_is_what_the_tasks_declare():
    assert PAGE.read_text() == page(), "write it anew: python -m tests.learners.test_what_leaves"


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_a_run_asks_for_nothing_that_the_page_does_not_have(algorithm):
    federation = tiny.federation(algorithm, module=tiny.two_layers(), rounds=2)
    asked = set()
    ask = federation.ask

    def heard(task, *arguments, **named):
        asked.add(task.name)
        return ask(task, *arguments, **named)

    federation.ask = heard
    for _ in federation.rounds():
        pass
    assert asked <= {*build_algorithm(algorithm, {}).traits.asks, *watching()}


if __name__ == "__main__":
    PAGE.write_text(page())
