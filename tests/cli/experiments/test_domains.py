"""`coalitions compare --by-domain`: the mean of each domain's honest clients."""

from __future__ import annotations

import csv
import io
import json
import statistics

import jsonschema
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from learners.experiments.comparison_tables import FORMATS, TABLES, fitting
from tests.cli.experiments.test_compare import checked, document_of
from tests.cli.federation.test_run import SHORT, typed  # noqa: F401 (a fixture)
from tests.cli.test_json import SCHEMAS

DOMAINS = ("--dataset", "digits-domains", "--partition", "domains:plain=2,noisy=2", "--clients", 4)
TWO = ("compare", "--seeds", "0,1", *SHORT, *DOMAINS, "--poison", "wrong-labels:1")


def by_hand(runs, figures):
    """The means of the honest clients 0, and 2 and 3, in each run, and over runs."""
    plain = [figures(run)[0] for run in runs]
    noisy = [(figures(run)[2] + figures(run)[3]) / 2 for run in runs]
    return {
        domain: {"mean": sum(each) / 2, "sd": statistics.stdev(each), "per_seed": each}
        for domain, each in (("plain", plain), ("noisy", noisy))
    }


def test_each_domain_has_the_mean_of_its_honest_clients(tmp_path, typed):  # noqa: F811
    command = (*TWO, "--metric", "auroc", "--by-domain", "--out", "kept")
    table = typed(*command, "--by", "accuracy", "--output", "table.csv")
    assert table.returncode == 0, table.stderr
    assert table.stdout.splitlines()[0].split() == ["algorithm", "plain", "noisy", "mean"]
    assert "mean: over all honest clients." in " ".join(table.stdout.split())

    document = checked(typed(*command, "--by", "accuracy", "--json"))
    lines = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    for name, row in document["algorithms"].items():
        expected = by_hand(row["runs"], lambda run: run["per_client_test_accuracy"])
        assert row["by_domain"] == expected
        told = [float(line["domain_noisy"]) for line in lines if line["algorithm"] == name]
        assert told == row["by_domain"]["noisy"]["per_seed"]

    by_auroc = checked(typed(*command, "--by", "auroc", "--json"))
    for name, row in by_auroc["algorithms"].items():
        results = [
            json.loads((tmp_path / "kept" / f"{name}-seed{seed}" / "result.json").read_text())
            for seed in (0, 1)
        ]
        expected = by_hand(results, lambda result: result["metrics"]["auroc"]["per_client"])
        assert row["by_domain"] == expected


def test_data_without_domains_have_no_means_of_them(typed):  # noqa: F811
    document = checked(typed("compare", "--algorithms", "local", "--seed", "0", *SHORT, "--json"))
    assert document["algorithms"]["local"]["by_domain"] == {}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (SHORT, "--by-domain: the honest clients of local, fedavg have no domains; choose data"),
        (
            (*SHORT, *DOMAINS, "--algorithms", "local", "--variant", "b: fedavg dataset=digits"
             " partition=iid"),
            "the honest clients of b have no domains",
        ),
        ((*SHORT, *DOMAINS, "--poison", "noise:0,1,2,3"), "the honest clients of local, fedavg"),
        ((*SHORT, *DOMAINS, "--by", "loss"), "--by-domain needs a figure of each client"),
    ],
)  # fmt: skip
def test_what_has_no_domains_to_show_is_refused_before_the_first_run(
    arguments,
    sentence,
    tmp_path,
    typed,  # noqa: F811
):
    result = typed("compare", *arguments, "--by-domain", "--out", "kept", "--quiet")
    assert result.returncode == 2
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not any(tmp_path.iterdir())


# -- what it prints --------------------------------------------------------------------------------


def with_domains():
    """A comparison nobody ran, of three rows: the last has no clients in one domain."""
    document = document_of()
    for number, row in enumerate(document["algorithms"].values()):
        row["by_domain"] = {
            domain: {"mean": mean, "sd": 0.01, "per_seed": [mean] * 3}
            for domain, mean in (("plain", 0.9 - number / 10), ("no_isy", 0.5 + number / 10))
            if number < 2 or domain == "plain"
        }
    jsonschema.validate(document, {"$ref": "#/$defs/compare", "$defs": SCHEMAS["$defs"]})
    return document


def test_a_table_has_a_column_for_each_domain_and_the_mean_last():
    lines = TABLES["markdown"](with_domains(), by_domain=True).splitlines()
    assert lines[0] == "| algorithm | plain | no_isy | mean |"
    assert (
        lines[2] == "| `fed_avg&co` | **0.9000 ± 0.0100** | 0.5000 ± 0.0100 | **0.9000 ± 0.0100** |"
    )
    assert lines[3] == "| `local` | 0.8000 ± 0.0100 | **0.6000 ± 0.0100** | 0.8900 ± 0.0100 |"
    assert lines[4] == "| `method-2` | 0.7000 ± 0.0100 |  | 0.8800 ± 0.0100 |"
    assert r"algorithm & plain & no\_isy & mean \\" in TABLES["latex"](
        with_domains(), by_domain=True
    )
    assert "plain" not in TABLES["table"](with_domains())


def test_no_cell_is_the_best_of_a_domain_without_figures():
    document = with_domains()
    for row in document["algorithms"].values():
        row["by_domain"] = {"plain": {"mean": None, "sd": None, "per_seed": [None, 0.5, None]}}
    text = TABLES["markdown"](document, by_domain=True)
    assert "| `local` |  | 0.8900 ± 0.0100 |" in text
    assert "****" not in text
    lines = list(csv.DictReader(io.StringIO(FORMATS["csv"](document))))
    assert [line["domain_plain"] for line in lines[:3]] == ["", "0.5", ""]


def test_a_narrow_terminal_drops_domains_and_keeps_the_mean():
    kept, dropped = fitting(with_domains(), 50, by_domain=True)
    assert [column.head for column in kept] == ["plain", "mean"]
    assert [column.head for column in dropped] == ["no_isy"]
