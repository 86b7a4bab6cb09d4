"""`coalitions report`: the page is complete, draws itself in a browser, and fetches nothing."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from cli.report.charts import steady_numbers
from cli.report.contents import sections_of
from cli.report.methods import methods_of, read_runs
from cli.report.static import draw
from tests.cli.browser import Browser, needs_browser
from tests.cli.typed import typed as coalitions


def write_run(folder, clients=6, rounds=5, algorithm="cffl", seed=0, finished=True, forms=True):
    """Write a folder as a run leaves it."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    (folder / "config.toml").write_text(
        f'algorithm = "{algorithm}"\ndataset = "digits"\nclients = {clients}\n'
        f'partition = "ring:2"\nrounds = {rounds}\nseed = {seed}\n\n[options]\nsolver = "auto"\n'
    )
    with (folder / "metrics.jsonl").open("w") as file:
        for t in range(1, rounds + 1):
            accuracies = rng.uniform(0.5, 1, clients).tolist()
            line = {
                "round": t,
                "train_loss": 1 / t,
                "mean_test_accuracy": float(np.mean(accuracies)),
                "worst_client_accuracy": min(accuracies),
                "mean_test_loss": 2 / t,
                "per_client_test_accuracy": accuracies,
                "up": 10,
                "down": 20,
                "seconds": 0.5,
                "epsilon": 0.3 * t,
            }
            file.write(json.dumps(line) + "\n")
    if forms:  # coalitions, and says who is relevant to whom
        with (folder / "structures.jsonl").open("w") as file:
            for t in range(1, rounds + 1):
                half = clients // 2
                blocks = [list(range(half)), list(range(half, clients))]
                file.write(json.dumps({"round": t, "coalitions": blocks}) + "\n")
        frames = rng.normal(size=(rounds, clients, clients))
        frames[0, 0, 1] = np.nan
        np.save(folder / "relevance.npy", frames)
    described = [
        {
            "samples": 9,
            "labels": [5 * (k % 3 == c) for c in range(3)],
            "domain": "",
            "poisoned": False,
        }
        for k in range(clients)
    ]
    (folder / "clients.json").write_text(json.dumps(described))
    (folder / "environment.json").write_text(json.dumps({"python": "3.11", "cores": 2}))
    if finished:
        (folder / "result.json").write_text(json.dumps({"communication": {}, "seconds": 1.0}))
    return folder


ALL_DRAWN = """new Promise((done) => {
  const look = () => document.documentElement.dataset.ready ? done(true) : setTimeout(look, 20);
  look();
})"""


def test_the_page_is_one_file_that_fetches_nothing(tmp_path):
    run = write_run(tmp_path / "run")
    result = coalitions("report", run)
    assert result.returncode == 0, result.stderr
    page = (run / "report.html").read_text()
    own = page[: page.index('<script type="application/json"')]
    assert not re.findall(r"(?:src|href)\s*=", own)
    assert "default-src 'none'" in own
    for words in (
        "Mean test accuracy", "Mean test loss", "Test accuracy of each client",
        "Training samples by label and client", "Who is relevant to whom (synergies)", "the truth",
        "Coalitions over the rounds", "Synergies, coloured by coalition", "Model parameters sent",
        "here: python",
    ):  # fmt: skip
        assert words in own
    assert "Privacy spent" in own
    assert "Settings of cffl (seed 0)" in own


def test_text_in_a_run_cannot_become_markup(tmp_path):
    run = write_run(tmp_path / "run", algorithm="</script><b>x")
    assert coalitions("report", run).returncode == 0
    page = (run / "report.html").read_text()
    assert "<b>x" not in page


@needs_browser
def test_every_figure_is_drawn_and_the_slider_changes_the_heatmap(tmp_path):
    run = write_run(tmp_path / "run")
    coalitions("report", run)
    with Browser(tmp_path / "profile") as browser:
        browser.open(run / "report.html")
        assert browser.evaluate(ALL_DRAWN)
        charts = browser.evaluate("document.querySelectorAll('.chart').length")
        drawn = browser.evaluate("document.querySelectorAll('.chart .main-svg:first-child').length")
        assert drawn == charts == 15
        for chart in ("accuracy", "coalitions"):
            ticks = f"[...document.querySelectorAll('#{chart} .xtick text')]"
            shown = browser.evaluate(f"{ticks}.map((tick) => tick.textContent)")
            assert shown == ["1", "2", "3", "4", "5"]  # no round 1.5
        cells = "JSON.stringify(document.getElementById('relevance').data[0].z)"
        before = browser.evaluate(cells)
        # The user's hand: the slider goes to the first round.
        shown = browser.evaluate(
            """(() => {
              const slider = document.getElementById("relevance-round");
              slider.value = 0;
              slider.dispatchEvent(new Event("input"));
              return slider.nextElementSibling.textContent;
            })()"""
        )
        assert shown == "round 1"
        after = json.loads(browser.evaluate(cells))
        assert after != json.loads(before)
        assert after[0][1] is None  # what nobody knows stays unknown
        truth = np.load(run / "relevance.npy")[0]
        shade = (truth[np.isfinite(truth)].max() - truth[np.isfinite(truth)].min()) / 100
        assert np.nanmax(np.abs(np.array(after, float) - truth)) < 2 * shade
        assert browser.complaints == []
        asked = {address.partition(":")[0] for address in browser.requests}
        assert asked <= {"file", "data", "blob", "about"}


def test_a_large_report_is_small_enough(tmp_path):
    run = write_run(tmp_path / "run", clients=100, rounds=100)
    assert coalitions("report", run).returncode == 0
    assert (run / "report.html").stat().st_size < 12e6


@needs_browser
def test_a_large_report_is_interactive_soon(tmp_path):
    run = write_run(tmp_path / "run", clients=100, rounds=100)
    coalitions("report", run)
    with Browser(tmp_path / "profile") as browser:
        # The page's thread is timed, so that what else the machine does has no part in it.
        before = browser.seconds()
        browser.open(run / "report.html")
        assert browser.evaluate("Number(document.documentElement.dataset.interactive)") > 0
        assert browser.seconds() - before < 3
        assert browser.evaluate(ALL_DRAWN)
        before = browser.seconds()
        browser.evaluate(
            """(() => {
              const slider = document.getElementById("relevance-round");
              slider.value = 5;
              slider.dispatchEvent(new Event("input"));
              return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            })()"""
        )
        assert browser.seconds() - before < 1
        assert browser.complaints == []


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """A comparison of 21 methods with 2 seeds each, and a run that has only begun."""
    out = tmp_path_factory.mktemp("comparison") / "out"
    out.mkdir()
    for number in range(21):
        for seed in (9, 10):
            method = {"algorithm": f"method-{number}", "forms": number < 2}
            write_run(out / f"method-{number}-seed{seed}", seed=seed, **method)
    (out / "m99-seed0").mkdir()
    (out / "m99-seed0" / "config.toml").write_text((out / "method-0-seed9/config.toml").read_text())
    return out


def test_a_comparison_is_shown_by_method(comparison, tmp_path):
    result = coalitions("report", comparison, "--json")
    assert result.returncode == 0, result.stderr
    assert "m99-seed0 has not finished a round yet" in " ".join(result.stderr.split())
    page = (comparison / "report.html").read_text()
    assert "<h1>21 methods, 42 runs</h1>" in page
    assert page.count("data-method=") == 21
    accuracies = [
        json.loads(
            (comparison / f"method-3-seed{seed}" / "metrics.jsonl").read_text().splitlines()[-1]
        )["mean_test_accuracy"]
        for seed in (9, 10)
    ]
    row = re.search(r"<tr><th>method-3</th>(.*?)</tr>", page)[1]
    assert f"{np.mean(accuracies):.4f} ± {np.std(accuracies, ddof=1):.4f}" in row
    data = json.loads(
        re.search(r'id="report-data">(.*?)</script>', page)[1].replace("\\u003c", "<")
    )
    charts = {chart["name"]: chart for chart in data["charts"]}
    curves = {curve["name"]: curve for curve in charts["accuracy"]["curves"]}
    curve = curves["method-3"]
    assert curve["y"][-1] == pytest.approx(np.mean(accuracies), rel=1e-5)
    assert (curve["low"][-1], curve["high"][-1]) == pytest.approx(sorted(accuracies), rel=1e-5)
    assert len({tuple(style) for style in data["styles"]}) == 21  # no two lines look alike
    runs, _ = read_runs([comparison])
    shared, *own = sections_of(methods_of(runs))
    assert {chart.name for chart in shared.charts} >= {
        "accuracy",
        "privacy",
        "per-client",
        "traffic",
    }
    assert [section.title for section in own[:2]] == ["method-0 (seed 9)", "method-0 (seed 10)"]
    by_name = {chart.name: chart for chart in shared.charts}
    figures = {name: Figure() for name in ("accuracy", "per-client", "traffic")}
    for name, figure in figures.items():
        draw(by_name[name], figure)
    legend = figures["accuracy"].axes[0].get_legend().get_texts()
    assert [text.get_text() for text in legend] == [method.name for method in methods_of(runs)]
    assert figures["per-client"].axes[0].images[0].get_array().shape == (42, 6)
    assert len(figures["traffic"].axes[0].patches) == 2 * 21


@needs_browser
def test_a_comparison_fits_a_phone_and_its_legend_hides_methods(comparison, tmp_path):
    coalitions("report", comparison)
    with Browser(tmp_path / "profile", 390, 844, dark=True) as browser:
        browser.open(comparison / "report.html")
        assert browser.evaluate(ALL_DRAWN)
        assert browser.evaluate("document.documentElement.scrollWidth") == 390
        seen = "document.getElementById('accuracy').data.filter((t) => t.visible).length"
        assert browser.evaluate(seen) == 21
        browser.evaluate("document.querySelector('button[data-method=\"3\"]').click()")
        assert browser.evaluate(seen) == 20
        browser.evaluate("document.getElementById('everyone').click()")
        assert browser.evaluate(seen) == 21
        # The charts of each run are folded up, and drawn when they are unfolded.
        assert browser.evaluate("document.getElementById('relevance-1').data === undefined")
        browser.evaluate("document.getElementById('relevance-1').closest('details').open = true")
        assert browser.evaluate(
            """new Promise((done) => {
              const look = () =>
                document.getElementById("relevance-1").data ? done(true) : setTimeout(look, 20);
              look();
            })"""
        )
        assert browser.complaints == []


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ([{}, {"seed": 1}], ["fedavg"]),
        ([{}, {"algorithm": "local"}], ["fedavg (seed 0)", "local (seed 0)"]),
        (
            [{}, {"seed": 1}, {"lr": 0.5}, {"lr": 0.5, "seed": 1}],
            ["fedavg lr=0.1", "fedavg lr=0.5"],
        ),
        ([{}, {"seed": 1}, {"algorithm": "local"}], ["fedavg", "local"]),
        ([{}, {}], ["folder-0", "folder-1"]),
        ([{}, {"seed": 1, "workers": 2}], ["fedavg"]),
    ],
)
def test_runs_that_differ_in_their_seeds_alone_are_one_method(tmp_path, changes, names):
    folders = []
    for number, change in enumerate(changes):
        config = {"algorithm": "fedavg", "seed": 0, "clients": 1, "lr": 0.1, "workers": 1} | change
        folder = tmp_path / f"folder-{number}"
        folder.mkdir()
        (folder / "config.toml").write_text(
            "".join(f"{key} = {json.dumps(value)}\n" for key, value in config.items())
        )
        (folder / "metrics.jsonl").write_text('{"round": 1}\n')
        folders.append(folder)
    runs, waiting = read_runs(folders)
    assert waiting == []
    assert [method.name for method in methods_of(runs)] == names


def test_runs_side_by_side_and_figures_as_files(tmp_path):
    first = write_run(tmp_path / "first", seed=1)
    second = write_run(tmp_path / "second", seed=1, finished=False)
    result = coalitions(
        "report", first, second, "--output", tmp_path / "both.html",
        "--plots", tmp_path / "figures", "--json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["runs"] == ["first", "second"]  # the same method and seed: told apart by folder
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"accuracy.png", "accuracy.svg", "relevance-1.png", "coalitions-2.svg"} <= names
    page = (tmp_path / "both.html").read_text()
    charts = set(re.findall(r'class="chart" id="([^"]+?)(?:-truth)?"', page))
    assert names == {f"{name}.{ending}" for name in charts for ending in ("png", "svg")}
    assert "not finished" in (tmp_path / "both.html").read_text()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda run: (run / "config.toml").unlink(), "it has no config.toml"),
        (lambda run: (run / "metrics.jsonl").write_text(""), "has not finished a round yet"),
        (
            lambda run: (run / "metrics.jsonl").write_text("{\n"),
            "metrics.jsonl is damaged: line 1: ",
        ),
    ],
)
def test_what_is_no_run_is_said_to_be(tmp_path, damage, sentence):
    run = write_run(tmp_path / "run")
    damage(run)
    result = coalitions("report", run)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert not (run / "report.html").exists()


def test_a_coalition_keeps_its_number_while_most_of_it_stays():
    rounds = [
        np.array([0, 0, 0, 1, 1, 2]),
        np.array([1, 1, 1, 0, 0, 0]),
        np.array([0, 1, 1, 2, 2, 2]),
    ]
    numbers = steady_numbers(rounds)
    assert numbers[:, 1].tolist() == [0, 0, 0, 1, 1, 1]
    assert numbers[:, 2].tolist() == [3, 0, 0, 1, 1, 1]


def test_the_page_names_who_was_left_out(tmp_path):
    write_run(tmp_path / "run")
    assert coalitions("report", tmp_path / "run").returncode == 0
    assert "left out" not in (tmp_path / "run/report.html").read_text().split("<script")[0]
    path = tmp_path / "run/metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines[:2]:
        line["refused"] = {"4": "the reply has '<b>', which was not asked for"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert coalitions("report", tmp_path / "run").returncode == 0
    text = (tmp_path / "run/report.html").read_text()
    assert "left out client 4 in 2 of 5 rounds (the reply has '&lt;b&gt;'" in text
