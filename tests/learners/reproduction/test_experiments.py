"""Every table and figure at its smallest scale, and what its folder then has."""

from __future__ import annotations

import csv
import json
import pickle
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from coalitions.errors import InvalidInputError, NoSolutionError
from learners import reproduce
from learners.algorithm import build_algorithm
from learners.reproduction.carry_out import carry_out, plan
from learners.reproduction.claims import Measured
from learners.reproduction.experiment import EXPERIMENTS
from learners.reproduction.kept_experiments import ELSEWHERE, judged_again, rows_made_again
from learners.reproduction.pages import outcomes, summary_page
from learners.reproduction.printed import paper_table
from learners.runs.run import completed
from learners.settings.config import RunConfig, plain_settings
from learners.settings.options import options_of
from tests.cli.federation.test_run import typed  # noqa: F401 (a fixture)

WANTED = {
    *(f"pfedsv-table{n}" for n in range(1, 5)),
    *(f"pfedsv-fig{n}" for n in (2, 3, 4, 6, 7, 8, 9, 10, 11)),
    "pfedsv-rounds", "pfedsv-cka", "cffl-table1", "cffl-table2", "cffl-fig5", "cffl-fig6",
    *(f"fedc2i-table{n}" for n in range(1, 5)),
    "fedc2i-fig3", "fedacs-table1", "fedacs-fig1a", "fedacs-fig1b",
    "fedc2i-influence", "pfedsv-images", "cffl-settings", "fedacs-quantile", "fedacs-rates",
    "pfedsv-own-model", "fedacs-two-labels", "cffl-fifteen",
}  # fmt: skip

VERDICTS = {"holds", "does not hold", "level", "cannot be told"}


def test_all_tables_and_figures_are_there():
    assert set(EXPERIMENTS.names()) >= WANTED


@pytest.mark.parametrize("name", sorted(WANTED))
def test_an_experiment_ends_with_a_table_and_verdicts(name, tmp_path):
    planned = plan(name, "smoke", tmp_path)
    done = carry_out(planned, command="coalitions reproduce")
    folder = tmp_path / name
    assert {each.name for each in folder.iterdir()} >= {
        "table.md", "table.csv", "table.tex", "claims.json", "experiment.json",
    }  # fmt: skip
    assert list(folder.glob("*.svg"))
    assert list(folder.glob("*.png"))
    claims = json.loads((folder / "claims.json").read_text())
    assert claims
    for claim in claims:
        assert set(claim) >= {"claim", "paper", "ours", "interval", "verdict", "added", "why"}
        assert claim["verdict"] in VERDICTS
        assert claim["ours"] is not None or claim["why"] == "not measured", claim
    rows = list(csv.DictReader((folder / "table.csv").read_text().splitlines()))
    assert {row["row"] for row in rows} == set(done.found.rows)
    table = (folder / "table.md").read_text()
    assert all(row in table for row in done.found.rows)
    configurations = list(folder.glob("configurations/*.toml"))
    assert len(configurations) == len(planned.runs)
    for path in configurations:
        RunConfig.read(path)
    again = plan(name, "smoke", tmp_path)
    assert again.left == 0
    assert name in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("name", sorted(WANTED))
def test_printed_rows_and_columns_have_the_names_of_ours(name):
    experiment = EXPERIMENTS[name]()
    printed = experiment.printed
    if printed is None:
        return
    rows = {row for row, _ in experiment.runs("paper")}
    assert rows & set(printed.rows), (rows, set(printed.rows))
    missing = set(printed.rows) - rows - {"Ditto-G", "PerAvg-G"}  # a second model of a run
    assert not missing


@pytest.mark.parametrize("name", sorted(WANTED))
@pytest.mark.parametrize("scale", ["small", "paper"])
def test_settings_of_larger_scales_are_complete_and_sound(name, scale):
    for settings in EXPERIMENTS[name]().runs(scale).values():
        RunConfig.of(settings)


def test_the_papers_means_agree_with_their_rows_where_they_should():
    table = paper_table("fedc2i-table1")
    for row, figures in table.rows.items():
        domains = [figures[column].mean for column in table.columns[:-1]]
        assert sum(domains) / 5 == pytest.approx(figures["Avg"].mean, abs=0.02), row
    cffl = paper_table("cffl-table1")
    odd = []
    for images in (200, 400):
        for row, figures in cffl.rows.items():
            three = [figures[f"{domain}, {images} images"].mean for domain in ("MT", "SV", "MM")]
            if abs(sum(three) / 3 - figures[f"mean, {images} images"].mean) > 0.11:
                odd.append((row, images))
    assert odd == [("FA", 200), ("Loc", 200)]  # which the note says


def test_a_plan_says_what_is_wrong_before_anything_runs(tmp_path):
    with pytest.raises(Exception, match="did you mean 'fedc2i-table1'"):
        plan("fedc2i-tabel1", "smoke", tmp_path)
    with pytest.raises(Exception, match="seeds 0 asks for no seeds"):
        plan("pfedsv-fig2", "smoke", tmp_path, seeds=0)


def test_finished_runs_are_read_and_other_settings_refused(tmp_path):
    first = plan("pfedsv-fig2", "smoke", tmp_path, seeds=2)
    carry_out(first)
    before = (tmp_path / "pfedsv-fig2" / "table.csv").read_bytes()
    assert plan("pfedsv-fig2", "smoke", tmp_path, seeds=2).left == 0
    carry_out(plan("pfedsv-fig2", "smoke", tmp_path, seeds=2), jobs=2)
    assert (tmp_path / "pfedsv-fig2" / "table.csv").read_bytes() == before
    toml = next((tmp_path / "pfedsv-fig2" / "configurations").glob("*.toml"))
    assert completed(RunConfig.read(toml)).rounds == 2
    assert re.search(r"\d seeds", (tmp_path / "pfedsv-fig2" / "table.md").read_text())


def test_runs_that_two_experiments_have_in_common_are_made_once(tmp_path):
    table = plan("fedc2i-table3", "smoke", tmp_path)
    figure = plan("fedc2i-fig3", "smoke", tmp_path)
    assert figure.left == 1
    carry_out(table)
    made = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*/result.json")}
    assert len(made) == len(table.cells) == 6
    assert figure.as_it_stands().left == 0
    carry_out(figure.as_it_stands())
    assert made == {path: path.stat().st_mtime_ns for path in made}
    assert len(list(tmp_path.glob("runs/*/*/result.json"))) == 6


def test_rows_that_test_two_models_of_a_run_share_it(tmp_path):
    planned = plan("fedacs-table1", "smoke", tmp_path, seeds=2)
    assert len(planned.runs) == 5
    assert len(planned.cells) == 3 * 2


def test_columns_that_take_too_long_have_the_first_seed_alone(tmp_path, monkeypatch):
    influence = EXPERIMENTS["fedc2i-influence"]()
    assert influence.once("small") < {column for _, column in influence.runs("small")}
    assert not influence.once("paper")

    experiment = EXPERIMENTS["pfedsv-fig4"]
    columns = frozenset(column for _, column in experiment().runs("smoke"))
    monkeypatch.setattr(experiment, "once", lambda self, scale: columns)
    planned = plan("pfedsv-fig4", "smoke", tmp_path, seeds=2)
    assert {cell.config.seed for cell in planned.cells} == {0}
    done = carry_out(planned)
    assert {claim.verdict for claim in done.claims} == {"cannot be told"}


def test_a_row_whose_models_do_not_stay_finite_is_left_out_and_said(tmp_path):
    planned = plan("pfedsv-fig7", "smoke", tmp_path)
    (cell,) = planned.runs["FedFomo", ""]
    wild = replace(cell, config=replace(cell.config, lr=1e30))
    done = carry_out(replace(planned, runs={**planned.runs, ("FedFomo", ""): (wild,)}))
    assert set(done.found.rows) == {"pFedSV"}
    (sentence,) = done.missing
    assert sentence.startswith("Not in the table: FedFomo, seed 0: ")
    assert "finite" in sentence
    table = (tmp_path / "pfedsv-fig7" / "table.md").read_text()
    assert "Not in the table: FedFomo, seed 0" in table
    assert {claim.verdict for claim in done.claims if "FedFomo" in claim.text} == {"cannot be told"}
    with pytest.raises(NoSolutionError, match="finite"):
        carry_out(replace(planned, runs={("FedFomo", ""): (wild,)}).as_it_stands())


def test_recovered_pictures_are_kept_one_by_one(tmp_path):
    carry_out(plan("pfedsv-fig11", "smoke", tmp_path))
    (kept,) = (tmp_path / "pfedsv-fig11" / "pictures").glob("*/*.npy")
    written, table = kept.stat().st_mtime_ns, tmp_path / "pfedsv-fig11" / "table.csv"
    before = table.read_bytes()
    carry_out(plan("pfedsv-fig11", "smoke", tmp_path, seeds=2))
    assert kept.stat().st_mtime_ns == written
    assert len(list(kept.parent.iterdir())) == 2
    carry_out(plan("pfedsv-fig11", "smoke", tmp_path))
    assert table.read_bytes() == before


KEPT = Path(__file__).parents[3] / "docs" / "reproduction"


def test_the_page_of_what_the_papers_claim_is_that_of_the_experiments_beside_it():
    found = outcomes(KEPT)
    page = (KEPT / "README.md").read_text()
    assert page == summary_page(found)
    counted = Counter(
        claim["verdict"] for each in found for claim in each["claims"] if not claim["added"]
    )
    # The page about it all tells the same counts in words.
    words = " ".join((KEPT.parent / "reproduction.md").read_text().split())
    assert (
        f"Of {counted.total()} claims {counted['holds']} hold, {counted['does not hold']} do not"
        f" hold, {counted['level']} are level, and {counted['cannot be told']} cannot be told"
    ) in words
    told, _, _ = page.partition("## What was tried")
    for verdict in VERDICTS:
        assert told.count(f"| {verdict} |") == counted[verdict]
    for each in found:
        assert each["scale"] == "small"
        assert each["command"].startswith(f"coalitions reproduce {each['name']} --scale small")
        assert each["claims"] == json.loads((KEPT / each["name"] / "claims.json").read_text())


def test_all_other_experiments_are_kept():
    assert {each["name"] for each in outcomes(KEPT)} == WANTED


RENAMED = {
    "option keep": "option keep_scores",
    "option epsilon": "option explore",
    "option epsilon_decay": "option explore_decay",
    "option delta": "option difference_step",
}
"""Options that have other names since results were kept."""

LATER = {"option players": "all"}
"""Options that methods have got since, with the values that change nothing."""


@pytest.mark.parametrize("name", sorted(WANTED))
def test_kept_results_are_those_of_the_programs_that_are_here(name, tmp_path):
    """Claims follow from the kept figures, and settings and notes are those of a new run."""
    kept = json.loads((KEPT / name / "experiment.json").read_text())
    experiment = EXPERIMENTS[name]()
    found = Measured(tuple(kept["columns"]), kept["rows"], kept["unit"])
    claims = experiment.judged(found, {}, kept["scale"], len(kept["seeds"]))
    assert kept["claims"] == json.loads(json.dumps([claim.document() for claim in claims]))
    copy = tmp_path / name
    shutil.copytree(KEPT / name, copy)
    assert judged_again(copy) == kept
    for path in (KEPT / name).iterdir():  # tables and notes, too
        assert path.read_bytes() == (copy / path.name).read_bytes(), path
    shared = kept["settings"]["shared"]
    made = {(each["row"], each["columns"]): each["settings"] for each in kept["settings"]["runs"]}
    wanted = experiment.runs("small")
    assert set(made) == set(wanted)
    for key, given in wanted.items():
        there = shared | made[key]
        config = RunConfig.of(given)
        for setting, value in plain_settings(config).items():
            if setting in {*given, *(f"option {each}" for each in config.options)} - set(ELSEWHERE):
                assert there[setting] == value, (key, setting)
        # Defaults, too: a method that has changed since makes its kept rows stale.
        method = build_algorithm(config.algorithm, config.options)
        used = {each.name: getattr(method, each.name) for each in options_of(type(method))}
        known = {
            RENAMED.get(each, each): value
            for each, value in there.items()
            if each.startswith("option ")
        }
        later = {name: value for name, value in LATER.items() if name.split()[1] in used}
        now = {f"option {each}": value for each, value in used.items() if value is not None}
        assert now == later | known, f"{key[0]} was kept with other options; make its row again"


def test_claims_of_a_method_that_is_not_in_the_table_are_not_errors():
    """Its models did not stay finite; the table says so, and nothing is known of its leads."""
    kept = json.loads((KEPT / "fedc2i-table2" / "experiment.json").read_text())
    rows = {row: columns for row, columns in kept["rows"].items() if row != "FedC²I"}
    found = Measured(tuple(kept["columns"]), rows, kept["unit"])
    claims = EXPERIMENTS["fedc2i-table2"]().claims(found, {})
    assert "holds" not in {claim.verdict for claim in claims}


def test_one_claim_is_contradicted_by_its_own_paper_and_its_page_says_so():
    odd = [
        (each["name"], claim["claim"])
        for each in outcomes(KEPT)
        for claim in each["claims"]
        if (claim["paper"] or 0) < 0
    ]
    claim, kept = "COS is above IFCA (mean, 200 images)", ("cffl-fifteen", "cffl-table1")
    assert sorted(odd) == [(name, claim) for name in kept]
    for name in kept:
        page = (KEPT / name / "table.md").read_text()
        assert "82.9 for COS and 83.2 for IFCA" in " ".join(page.split())


def test_no_comparison_is_counted_twice():
    """Of two rows in a column there is one claim, alone or among several rivals."""
    seen = Counter()
    for each in outcomes(KEPT):
        for claim in each["claims"]:
            found = re.fullmatch(r"(.+) is above (.+) \((.+)\)", claim["claim"])
            if found and not claim["added"]:
                row, rivals, column = found.groups()
                seen.update(
                    (each["name"], row, other, column)
                    for other in each["rows"]
                    if f", {other}, " in f", {rivals}, "
                )
    assert seen
    assert set(seen.values()) == {1}


def test_kept_results_are_judged_again_without_a_run(tmp_path):
    copy = tmp_path / "pfedsv-table1"
    shutil.copytree(KEPT / copy.name, copy)
    kept = json.loads((copy / "experiment.json").read_text())
    stale = {**kept, "claims": kept["claims"][:1], "order": {}}
    (copy / "experiment.json").write_text(json.dumps(stale))
    (copy / "table.md").unlink()
    assert judged_again(copy) == kept
    assert (copy / "table.md").read_bytes() == (KEPT / copy.name / "table.md").read_bytes()
    # Another figure of one seed changes verdicts and table.
    kept["rows"]["pFedSV"]["MNIST, 10 clients"][0] -= 50.0
    (copy / "experiment.json").write_text(json.dumps(kept))
    assert judged_again(copy)["claims"] != kept["claims"]
    assert (copy / "table.md").read_bytes() != (KEPT / copy.name / "table.md").read_bytes()


def test_single_rows_are_made_again_and_the_others_keep_their_figures(tmp_path, monkeypatch):
    name = "fedacs-table1"
    first = carry_out(plan(name, "smoke", tmp_path / "first", seeds=2), command="as typed")
    kept = tmp_path / "first" / name
    before = json.loads((kept / "experiment.json").read_text())
    slower = dict(EXPERIMENTS[name]().methods("smoke"))
    pair = {"PerAvg-P", "PerAvg-G"}
    for row in pair:
        slower[row] = replace(slower[row], settings={"lr": 0.001})
    monkeypatch.setattr(EXPERIMENTS[name], "methods", lambda self, scale: slower)
    again = plan(name, "smoke", tmp_path / "again", seeds=2)
    document = rows_made_again(again, pair, kept)
    assert len(list((tmp_path / "again" / "runs").glob("*/*"))) == 2  # both rows are of one run
    for row, figures in before["rows"].items():
        assert (document["rows"][row] == figures) == (row not in pair)
    assert document["command"] == before["command"]
    assert document["made_again"].keys() == pair
    assert "PerAvg-P was made again on " in (kept / "table.md").read_text()
    # It is what the whole experiment gives with the new settings.
    whole = carry_out(plan(name, "smoke", tmp_path / "again", seeds=2)).to_dict()
    assert {key: whole[key] for key in ("rows", "settings", "claims", "order")} == {
        key: document[key] for key in ("rows", "settings", "claims", "order")
    }
    assert judged_again(kept) == document
    assert len(first.found.rows) == len(document["rows"])
    with pytest.raises(InvalidInputError, match="for the same"):
        rows_made_again(plan(name, "smoke", tmp_path / "again"), pair, kept)
    with pytest.raises(InvalidInputError, match="no rows"):
        rows_made_again(again, {"PerAvg"}, kept)


def test_the_page_of_a_folder_reads_what_earlier_versions_wrote(tmp_path):
    claim = {"claim": "a is above b", "paper": None, "ours": 1.0, "interval": [0.5, 1.5],
             "verdict": "holds"}  # fmt: skip
    old = {"name": "cffl-x", "scale": "small", "seeds": [0, 1], "order": {}, "claims": [claim]}
    (tmp_path / "cffl-x").mkdir()
    (tmp_path / "cffl-x" / "experiment.json").write_text(json.dumps(old))
    assert "| a is above b | – | +1.00 | +0.50 … +1.50 | holds |" in summary_page(
        outcomes(tmp_path)
    )


def test_reproduce_in_python_gives_what_the_command_prints(tmp_path, typed):  # noqa: F811
    command = ("reproduce", "fedc2i-table3", "--scale", "smoke", "--seeds", "2", "--quiet")
    said = typed(*command, "--out", tmp_path / "a", "--json")
    assert said.returncode == 0, said.stderr
    done = reproduce("fedc2i-table3", "smoke", tmp_path / "b", seeds=2)
    assert json.loads(done.to_json()) == json.loads(said.stdout)
    assert set(done.verdicts) == {claim["claim"] for claim in json.loads(said.stdout)["claims"]}
    for name in ("table.md", "claims.json", "table.csv"):
        files = [tmp_path / place / "fedc2i-table3" / name for place in ("a", "b")]
        assert len({file.read_bytes() for file in files}) == 1
    pytest.importorskip("pandas")
    row, column, mean = done.to_frame()[["row", "column", "mean"]].iloc[0]
    assert done.named[row][column] == mean
    assert len(done.to_frame(claims=True)) == len(done.claims)
    done.plot(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").exists()
    again = reproduce("fedc2i-table3", "smoke", tmp_path / "b", seeds=2)  # reads what is there
    assert pickle.loads(pickle.dumps(again)).to_dict() == done.to_dict()
    with pytest.raises(InvalidInputError, match="small"):
        reproduce("fedc2i-table3", "tiny", tmp_path)
