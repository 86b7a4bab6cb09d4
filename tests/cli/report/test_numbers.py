"""What a report says in numbers: standings, agreement with the truth, tables that sort."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("plotly", reason="plotly is not installed: pip install .[report]")
pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from cli.report.contents import NO_TRUTH, agreement, sections_of, truth_of
from cli.report.methods import methods_of, read_runs, standing_of
from cli.report.page import page, plain
from learners.experiments.paired_statistics import paired_difference
from learners.runs.reading import Clients
from tests.cli.browser import Browser, needs_browser
from tests.cli.report.test_report import ALL_DRAWN, write_run


@pytest.fixture
def two(tmp_path):
    """A comparison of two variants of one method, three seeds each."""
    out = tmp_path / "out"
    out.mkdir()
    for row in ("cos", "ica"):
        for seed in (0, 1, 2):
            folder = write_run(out / f"{row}-seed{seed}", seed=seed, rounds=3)
            config = folder / "config.toml"
            synergy = f'synergy = "{row}"\n'
            config.write_text(config.read_text() + synergy)
            lines = [
                json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()
            ]
            for line in lines:
                line["mean_test_accuracy"] -= 0.1 * (row == "ica") + 0.01 * seed
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (folder / "metrics.jsonl").write_text(text)
    return out


def test_variants_have_their_names_and_the_standing_that_compare_gives(two):
    methods = methods_of(read_runs([two])[0])
    assert [method.name for method in methods] == ["cos", "ica"]
    scores = [[run.evaluated[-1]["mean_test_accuracy"] for run in m.runs] for m in methods]
    gap = paired_difference(scores[1], scores[0])
    document = page(methods, sections_of(methods))
    table = standing_of(methods)
    assert table.baseline == "cos"
    assert table.standing["ica"].difference == gap
    assert table.cells("ica") == {
        "rank": "2.00", "vs cos": f"{gap.mean:+.4f} ± {(gap.high - gap.low) / 2:.4f}",
    }  # fmt: skip
    assert f'<td class="number">{table.cells("ica")["vs cos"]}</td>' in document
    assert "Student&#x27;s t over 3 seeds" in document or "Student's t over 3 seeds" in document


def test_a_report_begins_with_who_is_best_and_has_the_best_in_the_first_row(tmp_path):
    for row, seed in (("aaa", 0), ("aaa", 1), ("zzz", 0), ("zzz", 1)):
        folder = write_run(tmp_path / f"{row}-seed{seed}", seed=seed, rounds=2)
        text = (folder / "config.toml").read_text()
        (folder / "config.toml").write_text(text + f'synergy = "{row}"\n')
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for line in lines:
            line["mean_test_accuracy"] = 0.5 + 0.25 * (row == "zzz") + 0.01 * seed
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    methods = methods_of(read_runs([tmp_path])[0])
    document = page(methods, sections_of(methods))
    # Both seeds differ by the same amount, which says nothing of a third one.
    assert (
        "By mean accuracy over 2 seeds: best on average: zzz; not settled against aaa" in document
    )
    assert document.index("<th>zzz</th>") < document.index("<th>aaa</th>")
    assert document.index("<th>zzz-seed1</th>") < document.index("<th>aaa-seed0</th>")
    assert standing_of(methods).cells("aaa")["vs zzz"] == "-0.2500 (too few seeds)"


def test_precision_and_recall_have_their_names_and_their_axes_end_at_one(two):
    charts = {chart.name: chart for chart in sections_of(methods_of(read_runs([two])[0]))[0].charts}
    for name in ("precision", "recall"):
        assert name in charts[name].title.lower()
        assert plain(charts[name])["y_range"] == (0.0, 1.0)
    assert charts["agreement"].y_range[1] == 1


def test_runs_that_cannot_be_paired_have_no_standing(two):
    (two / "ica-seed2" / "config.toml").unlink()
    assert standing_of(methods_of(read_runs([two])[0])) is None
    lines = (two / "ica-seed1" / "metrics.jsonl").read_text().splitlines(True)
    (two / "cos-seed2" / "config.toml").unlink()
    assert standing_of(methods_of(read_runs([two])[0])) is not None
    (two / "ica-seed1" / "result.json").unlink()
    (two / "ica-seed1" / "metrics.jsonl").write_text("".join(lines[:2]))  # a round behind
    assert standing_of(methods_of(read_runs([two])[0])) is None


def clients(labels, domains=None, poisoned=None):
    n = len(labels)
    return Clients(
        [1] * n, np.array(labels, np.int64).reshape(n, -1), domains or [""] * n,
        poisoned or [False] * n, [""] * n,
    )  # fmt: skip


def test_agreement_is_one_where_all_is_found_and_told_by_round(tmp_path):
    from dataclasses import replace

    (run,), _ = read_runs([write_run(tmp_path / "run", rounds=2)])
    people = clients([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1], [0, 1]])
    truth, words = truth_of(replace(run, clients=people))
    assert words == "a label in common"
    good = np.where(truth, 1.0, -1.0)
    bad = np.zeros((6, 6))
    bad[0, 1] = bad[0, 2] = 1.0
    right, alone = np.array([0, 0, 1, 1, 1, 1]), np.array([-1, -1, -1, -1, -1, -1])
    run = replace(
        run, clients=people, arrays={"relevance": np.stack([bad, good])},
        structures=[(1, alone), (2, right)],
    )  # fmt: skip
    found = agreement(run)
    assert found["index"] == {1: pytest.approx(0.0), 2: pytest.approx(1.0)}
    assert found["precision"] == {1: 0.5, 2: 1.0}
    assert found["recall"] == {1: pytest.approx(1 / 14), 2: 1.0}


def test_the_truth_is_said_in_words_and_not_made_up(tmp_path):
    from dataclasses import replace

    (run,), _ = read_runs([write_run(tmp_path / "run", rounds=2)])

    def truth(people, partition="iid"):
        return truth_of(replace(run, clients=people, config=run.config | {"partition": partition}))

    assert truth(None) == (None, "")
    assert truth(clients(np.zeros((3, 0)))) == (None, "")  # numbers to predict: no labels
    assert truth(clients([[1]] * 2, ["a", "b"]))[1] == "the same domain"
    poisoned = truth(clients([[1]] * 2, ["a", "a"], [False, True]))
    assert poisoned[1] == "the same domain, both poisoned or both not"
    # A ring is no partition: labels are shared, but not by all alike.
    ring = clients([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])
    assert truth(ring)[0].all()
    # Hospitals have all labels, and that tells nothing of who should be with whom.
    assert truth(ring, "natural") == (None, NO_TRUTH)
    grouped = truth(clients([[1]] * 3, ["a", "b", "a"]), "natural")
    assert grouped[1] == "the same group"
    assert grouped[0].sum() == 5


def test_a_method_that_records_relevance_says_what_that_is():
    import learners.algorithms
    from learners.settings.declared_options import declared_methods

    files = [*Path(learners.algorithms.__path__[0]).glob("[!_]*.py")]
    records = {file.stem for file in files if "record(relevance=" in file.read_text()}
    records |= {file.stem for file in files if "            relevance=relevance,"
                in file.read_text()}  # fmt: skip
    assert records == {
        name for name, method in declared_methods().items() if getattr(method, "relevance_is", "")
    }


def test_a_report_of_natural_clients_says_that_there_is_no_truth(tmp_path):
    folder = write_run(tmp_path / "run", rounds=2)
    config = folder / "config.toml"
    config.write_text(config.read_text().replace('"ring:2"', '"natural"'))
    methods = methods_of(read_runs([folder])[0])
    sections = sections_of(methods)
    assert not {"agreement", "precision", "recall"} & {c.name for c in sections[0].charts}
    document = page(methods, sections)
    assert NO_TRUTH in document
    assert "the truth: " not in document


def test_a_report_of_a_regression_is_about_its_own_metric(tmp_path):
    for row, error in (("good", 0.5), ("bad", 0.75)):
        folder = write_run(tmp_path / f"{row}-seed0", rounds=2, forms=False)
        config = folder / "config.toml"
        config.write_text(config.read_text().replace('"auto"', f'"{row}"'))
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for line in lines:
            told = {"mean": error, "per_client": [error] * 6, "higher_is_better": False}
            line |= {"mean_test_accuracy": None, "worst_client_accuracy": None,
                     "per_client_test_accuracy": None, "metrics": {"rmse": told}}  # fmt: skip
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "metrics.jsonl").write_text(text)
        people = json.loads((folder / "clients.json").read_text())
        named = [each | {"labels": [], "name": f"ward {k}"} for k, each in enumerate(people)]
        (folder / "clients.json").write_text(json.dumps(named))
    methods = methods_of(read_runs([tmp_path])[0])
    charts = {chart.name: chart for chart in sections_of(methods)[0].charts}
    assert list(charts["metric-rmse"].curves[1].y) == [0.5, 0.5]
    assert charts["per-client"].title == "Test rmse of each client"
    assert list(charts["per-client"].categories)[:2] == ["ward 0", "ward 1"]
    assert not {"accuracy", "split"} & set(charts)
    assert standing_of(methods).baseline == "good"
    assert "mean rmse" in page(methods, sections_of(methods))


@needs_browser
def test_figures_leave_as_csv_tables_sort_and_zero_is_dark_at_night(two, tmp_path):
    methods = methods_of(read_runs([two])[0])
    (tmp_path / "page.html").write_text(page(methods, sections_of(methods)))
    with Browser(tmp_path / "profile", dark=True) as browser:
        browser.open(tmp_path / "page.html")
        assert browser.evaluate(ALL_DRAWN)
        tables = json.loads(browser.evaluate(
            "JSON.stringify(Object.fromEntries(report.charts.map((c) => [c.name, csvOf(c)])))"
        ))  # fmt: skip
        assert browser.evaluate("document.querySelectorAll('button.save').length") == len(tables)
        rows = list(csv.DictReader(io.StringIO(tables["accuracy"])))
        assert [row["method"] for row in rows] == 3 * ["cos"] + 3 * ["ica"]
        scores = [run.evaluated[-1]["mean_test_accuracy"] for run in methods[0].runs]
        assert float(rows[2]["accuracy"]) == pytest.approx(np.mean(scores), rel=1e-5)
        assert len(list(csv.reader(io.StringIO(tables["relevance-1"])))) == 1 + 3 * 36
        browser.evaluate("document.querySelector('button.save').click()")  # and nothing complains

        rows = "[...document.querySelector('table').tBodies[0].rows]"
        names = f"{rows}.map((row) => row.cells[0].textContent).join()"
        heads = "[...document.querySelectorAll('table')[0].tHead.rows[0].cells]"
        column = f"{heads}.find((h) => h.textContent === 'mean accuracy')"
        browser.evaluate(f"{column}.firstChild.click()")
        assert browser.evaluate(names) == "cos,ica"
        assert browser.evaluate(f"{column}.getAttribute('aria-sort')") == "descending"
        browser.evaluate(f"{column}.firstChild.click()")
        assert browser.evaluate(names) == "ica,cos"
        browser.evaluate("document.getElementById('relevance-1').closest('details').open = true")
        scale = json.loads(browser.evaluate(
            """new Promise((done) => {
              const chart = document.getElementById("relevance-1");
              const look = () =>
                chart.data ? done(JSON.stringify(chart.data[0].colorscale)) : setTimeout(look, 20);
              look();
            })"""
        ))  # fmt: skip
        middle = next(paint for place, paint in scale if place == 0.5)
        assert int(middle[1:3], 16) < 60  # zero is dark
        assert browser.complaints == []
