"""Every method learns every kind of data, or says before the run that it cannot."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from coalitions import InvalidInputError
from learners.algorithm import ALGORITHMS
from learners.measures.metrics import USUAL
from learners.runs.run import run
from learners.task import TASKS
from tests.contracts import tasks

NAMES = [n for n in ALGORITHMS if ALGORITHMS[n].__module__.startswith("learners.algorithms.")]
SMALL = {"rounds": 2, "local_epochs": 1, "batch_size": 8, "workers": 1, "evaluate_every": 2}
QUICK = {"pfedhn": {"width": 4, "embedding": 2}}
"""Options of methods whose defaults are slow."""

CANNOT = {
    ("domain", "tabular regression"): "domains or labels",
    **{
        (name, task): f"{name} is for classification"
        for name in ("fedproto", "fedrod")
        for task in ("tabular multi-label", "tabular regression", "next token")
    },
}
"""What a method says of the tasks that it cannot do."""

FAST = ("tabular classification", "tabular regression", "next token", "pictures")
PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def settings(name: str) -> dict[str, object]:
    return SMALL | {"algorithm": name, "options": QUICK.get(name, {})}


def check(name: str, task: str) -> None:
    data = tasks.federation(task)
    rounds = []
    if (name, task) in CANNOT:
        with pytest.raises(InvalidInputError, match=re.escape(CANNOT[name, task])):
            run(settings(name), data=data, on_round=rounds.append)
        assert not rounds  # said before anything was trained
        return
    result = run(settings(name), data=data)
    assert result.client_names == ("site 0", "site 1", "site 2")
    kind = data.targets.kind
    assert result.task == kind
    assert (result.mean_test_accuracy is not None) == data.targets.has_classes
    told = result.to_dict()["metrics"][USUAL[kind]]
    assert len(told["per_client"]) == 3
    assert all(math.isfinite(each) for each in told["per_client"])
    assert not result.history[-1]["refused"]
    assert math.isfinite(result.history[-1]["mean_test_loss"])


@pytest.mark.parametrize("task", FAST)
@pytest.mark.parametrize("name", NAMES)
def test_a_method_learns_a_task_or_says_that_it_cannot(name, task):
    check(name, task)


@pytest.mark.slow
@pytest.mark.parametrize("task", [task for task in tasks.SAMPLES if task not in FAST])
@pytest.mark.parametrize("name", NAMES)
def test_a_method_learns_the_other_tasks_or_says_that_it_cannot(name, task):
    check(name, task)


@pytest.mark.parametrize("name", ["fedavg", "fedc2i", "fedproto", "fedrep", "fedrod"])
def test_a_plain_module_needs_no_registration(name):
    result = run(
        settings(name) | {"rounds": 1}, data=tasks.federation("pictures"), model=tasks.Plain
    )
    assert type(result.model(1)) is tasks.Plain
    assert result.config.model.startswith("own@")


def table() -> str:
    """Return the table of methods and tasks, as docs/data.md has it."""
    lines = [
        "| method | " + " | ".join(tasks.SAMPLES) + " |",
        "|---|" + "---|" * len(tasks.SAMPLES),
    ]
    for name in NAMES:
        can = ["no" if (name, task) in CANNOT else "yes" for task in tasks.SAMPLES]
        lines.append(f"| `{name}` | " + " | ".join(can) + " |")
    return "\n".join(lines)


def test_the_table_in_the_docs_is_what_the_methods_can():
    assert table() in PAGE.read_text(), "docs/data.md is out of date; it should have:\n" + table()


def test_the_docs_call_tasks_what_they_are_called():
    text = PAGE.with_name("federation.md").read_text()
    table = text.split("| task | asks a client to |\n|---|---|\n")[1].split("\n\n")[0]
    named = [name for line in table.splitlines() for name in re.findall(r"`(.+?)`", line)]
    assert [name for name in named if name not in TASKS.names()] == []
