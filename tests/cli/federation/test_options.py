"""The reference of options, and flags made from it, as a user meets them."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest

from cli.terminal.completion import _PLACES, complete_option, registered
from learners.settings.config import RunConfig
from learners.settings.declared_options import declared_methods
from learners.settings.options import options_of
from tests.cli.federation.test_run import coalitions, typed  # noqa: F401 (a fixture)
from tests.cli.test_json import SCHEMAS
from tests.cli.typed import COMMAND, in_a_process

PAGE = Path(__file__).parents[3] / "docs" / "options.md"


def test_the_page_is_the_one_that_is_generated(typed):  # noqa: F811
    printed = typed("options", "all", "--as", "markdown")
    assert printed.returncode == 0, printed.stderr
    assert PAGE.read_text(encoding="utf-8") == printed.stdout, (
        "docs/options.md is out of date: coalitions options all --as markdown > docs/options.md"
    )


def test_every_option_says_what_it_does_before_it_gives_a_symbol(typed):  # noqa: F811
    tables = json.loads(typed("options", "all", "--json").stdout)
    helps = {
        f"{table} {name}": option["help"]
        for table, options in tables.items()
        for name, option in options.items()
    }
    words = {name: re.findall(r"[a-z]{3,}", text) for name, text in helps.items()}
    assert {name for name, found in words.items() if len(found) < 2} == set()
    symbol = re.compile(r"\W*(The first )?([α-ωΑ-Ω]\w*|[A-Z]|\w_\w+)\b[.;:]")
    assert {name for name, text in helps.items() if symbol.match(text)} == set()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("algorithms", ""),
        ("algorithms --json", ""),
        ("datasets", ""),
        ("options", ""),
        ("options pfedsv", ""),
        ("options all --as markdown", ""),
        ("options pfedsw", "no algorithm named 'pfedsw'; did you mean 'pfedsv'? there are: apfl,"),
        ("datasets digit", "no data set named 'digit'; did you mean 'digits'? there are: "),
        ("run --algorithm fedprocks", "no algorithm named 'fedprocks'; did you mean 'fedprox'?"),
        ("run --dataset digit", "no data set named 'digit'; did you mean 'digits'?"),
        ("run --model nn", "no model named 'nn'; "),
        ("compare --algorithms local,fedavgg", "no algorithm named 'fedavgg'; did you mean"),
    ],
)
def test_lists_and_misspelt_names_do_not_wait_for_torch(line, said, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Heavy:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'scipy', 'numba', 'sklearn'):\n"
        "            sys.exit(f'{name} was imported')\n"
        "sys.meta_path.insert(0, Heavy())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    result = in_a_process(*line.split(), env=environment, cwd=tmp_path)
    assert result.returncode == (2 if said else 0), result.stderr
    assert bool(result.stdout) is not bool(said)
    assert said in result.stderr
    assert "was imported" not in result.stderr


def test_methods_are_declared_as_they_are_registered():
    from learners.algorithm import ALGORITHMS

    declared = declared_methods()
    assert list(declared) == registered("algorithms")
    for name, method in declared.items():
        assert inspect.getdoc(method) == inspect.getdoc(ALGORITHMS[name])
        assert options_of(method) == options_of(ALGORITHMS[name])


def test_the_settings_of_a_run(tmp_path):
    result = coalitions("options", "--json", cwd=tmp_path)
    document = json.loads(result.stdout)
    jsonschema.validate(document, {"$ref": "#/$defs/options", "$defs": SCHEMAS["$defs"]})
    assert document["run"]["participation"]["range"] == "above 0 and at most 1"
    assert document["run"]["dp"]["choices"] == ["updates", "records"]
    table = coalitions("options", env={**os.environ, "COLUMNS": "60"}, cwd=tmp_path).stdout
    assert "validation_share" in table
    assert max(map(len, table.splitlines())) <= 60


def test_options_of_one_algorithm_and_of_all(typed):  # noqa: F811
    (options,) = json.loads(typed("options", "per-fedavg", "--json").stdout).values()
    assert options["difference_step"]["needs"] == {"variant": ["hf"]}
    assert "Only if variant is hf" in " ".join(typed("options", "per-fedavg").stdout.split())
    assert "fedavg has no options" in typed("options", "fedavg").stdout
    document = json.loads(typed("options", "all", "--json").stdout)
    jsonschema.validate(document, {"$ref": "#/$defs/options", "$defs": SCHEMAS["$defs"]})
    assert set(document) == {"run", *registered("algorithms")}
    assert "did you mean 'fedprox'" in typed("options", "fedprocks").stderr


def test_formulas_are_letters_and_no_latex(typed):  # noqa: F811
    shown = typed("options", "all").stdout
    assert re.findall(r"\\\w+|\w*Vert|:math:", shown) == []
    assert "‖" in shown


def test_every_setting_has_a_flag_and_its_range_in_the_help():
    help_text = coalitions("run", "--help", env={**os.environ, "COLUMNS": "200"}).stdout
    for row in options_of(RunConfig):
        flag = "--plugin" if row.name == "plugins" else f"--{row.name.replace('_', '-')} "
        assert flag in help_text
        if row.range is not None:
            assert str(row.range) in help_text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--participation", "2"), "participation must be above 0 and at most 1, not 2.0"),
        (("--validation-share", "1"), "--validation-share must be at least 0 and below 1, not 1.0"),
        (("--lr", "nan"), "lr must be a positive number, not nan"),
        (("--checkpoint-every", "0"), "--checkpoint-every must be 1 or more, not 0"),
        (("--optimizer", "sdg"), "did you mean 'sgd'? it can be: sgd, adam"),
        (("--model", "lenet5"), "did you mean 'lenet-5'?"),
        (("--dataset", "digitz"), "did you mean 'digits'?"),
        (("--aggregation", "crum"), "did you mean 'krum'?"),
        (("--algorithm", "apfl", "--set", "alpha=2"), "alpha of apfl must be from 0 to 1, not 2.0"),
        (
            ("--algorithm", "pfedsv", "--set", "explor=1"),
            "did you mean 'explore'? there are: k, dynamic, order, keep_scores, explore",
        ),
        (("--algorithm", "cffl", "--set", "solver=cbd"), "did you mean 'cbc'?"),
        (
            ("--algorithm", "per-fedavg", "--set", "difference-step=1"),
            "difference_step of per-fedavg has no effect unless variant is hf; it is fo",
        ),
        (
            ("--optimizer", "adam", "--momentum", "0.9"),
            "momentum has no effect unless optimizer is sgd; it is adam",
        ),
        (("--delta", "0.1"), "delta has no effect without noise or epsilon"),
        (("--clints", "3"), "No such option: --clints (Possible options: --clients"),
    ],
)
def test_what_cannot_be_is_one_sentence(arguments, sentence, typed, tmp_path):  # noqa: F811
    result = typed("run", *arguments)
    assert result.returncode == 2, result.stdout
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("kind", _PLACES)
def test_names_to_complete_are_those_that_are_registered(kind):
    from coalitions.data_models import DATA_MODELS
    from coalitions.structures.stability import NOTIONS
    from coalitions.synergy import SYNERGIES
    from coalitions.values.estimator import (
        ESTIMATORS,
        INTERACTION_ESTIMATORS,
        PAIR_ESTIMATORS,
        SEMIVALUE_ESTIMATORS,
    )
    from coalitions.values.interaction_indices import INDICES
    from learners.algorithm import ALGORITHMS
    from learners.data.dataset import DATASETS
    from learners.data.partitions import PARTITIONS
    from learners.measures.losses import LOSSES
    from learners.measures.metrics import METRICS
    from learners.models import MODELS
    from learners.reproduction.experiment import EXPERIMENTS
    from learners.server.aggregation import AGGREGATIONS
    from solvers.solver import SOLVERS

    registries = {
        "algorithms": ALGORITHMS,
        "aggregations": AGGREGATIONS,
        "data-models": DATA_MODELS,
        "datasets": DATASETS,
        "experiments": EXPERIMENTS,
        "losses": LOSSES,
        "metrics": METRICS,
        "notions": NOTIONS,
        "partitions": PARTITIONS,
        "synergies": SYNERGIES,
        "models": MODELS,
        "solvers": SOLVERS,
        "estimators": ESTIMATORS,
        "semivalues": SEMIVALUE_ESTIMATORS,
        "pairs": PAIR_ESTIMATORS,
        "interactions": INTERACTION_ESTIMATORS,
        "indices": INDICES,
    }
    theirs = [
        name
        for name in registries[kind]
        if registries[kind][name].__module__.split(".")[0] in ("coalitions", "solvers", "learners")
    ]
    assert registered(kind) == theirs


@pytest.mark.parametrize("algorithm", registered("algorithms"))
def test_options_to_complete_are_those_there_are(algorithm):
    from learners.algorithm import ALGORITHMS

    context = SimpleNamespace(params={"algorithm": algorithm})
    names = [f"{row.name}=" for row in options_of(ALGORITHMS[algorithm])]
    assert complete_option(context, "") == names


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("coalitions run --algorithm fedpr", ["fedprox", "fedproto"]),
        ("coalitions run --dataset digits-", ["digits-domains", "digits-tabular"]),
        ("coalitions run --model lenet-5", ["lenet-5"]),
        ("coalitions solve --solver cp", ["cp-sat"]),
        ("coalitions shapley --method svar", ["svarm"]),
        ("coalitions options pfedm", ["pfedme"]),
        ("coalitions sta", ["stability"]),
        ("coalitions compare --algorithms local,fedr", ["local,fedrep", "local,fedrod"]),
        ("coalitions run --algorithm pfedme --set i", ["inner_steps="]),
    ],
)
def test_the_shell_completes_names_without_loading_anything_heavy(line, found, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Heavy:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'numpy', 'scipy', 'numba'):\n"
        "            sys.exit(f'{name} was imported')\n"
        "sys.meta_path.insert(0, Heavy())\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "_COALITIONS_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }
    result = subprocess.run([COMMAND], capture_output=True, text=True, env=environment)
    assert sorted(result.stdout.split()) == sorted(found), result.stderr
