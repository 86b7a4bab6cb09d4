"""`coalitions report`: the page is complete, draws itself in a browser, and fetches nothing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time

import numpy as np
import pytest

from cli.report.charts import steady_numbers
from tests.cli.test_solve import coalitions

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here: apt-get install chromium"
)


def write_run(folder, clients=6, rounds=5, algorithm="cffl", seed=0, finished=True):
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
        (folder / "result.json").write_text(json.dumps({"seconds": 1.0}))
    return folder


def browse(path, tmp_path, *flags):
    """Return the page's DOM after its scripts ran, and what the browser had to say."""
    result = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr",
            "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=10000",
            *flags, "--dump-dom", path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return result.stdout, [line for line in result.stderr.splitlines() if "CONSOLE" in line]


def test_the_page_is_one_file_that_fetches_nothing(tmp_path):
    run = write_run(tmp_path / "run")
    result = coalitions("report", run)
    assert result.returncode == 0, result.stderr
    page = (run / "report.html").read_text()
    own = page[: page.index('<script type="application/json"')]
    assert not re.findall(r"(?:src|href)\s*=", own)
    assert "default-src 'none'" in own
    for words in ("Mean test accuracy", "Who is relevant to whom", "Coalitions over the rounds"):
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
    report = run / "report.html"
    moved = report.with_name("moved.html")
    # The user's hand: the slider goes to the first round, and the colours are written down.
    script = """<script>
      const cells = () => JSON.stringify(document.getElementById("relevance").data[0].z);
      const before = cells(), slider = document.getElementById("relevance-round");
      slider.value = 0; slider.dispatchEvent(new Event("input"));
      document.documentElement.dataset.moved = String(before !== cells());
      document.documentElement.dataset.shown = slider.nextElementSibling.textContent;
      document.documentElement.dataset.unknown = String(
        document.getElementById("relevance").data[0].z[0][1] === null);
    </script></body>"""
    moved.write_text(report.read_text().replace("</body>", script))
    dom, complaints = browse(moved, tmp_path)
    assert complaints == []
    assert 'data-ready="true"' in dom
    assert 'data-moved="true"' in dom
    assert 'data-shown="round 1"' in dom
    assert 'data-unknown="true"' in dom
    drawn = dom.count('<svg class="main-svg"')
    assert drawn >= len(re.findall(r'class="chart', report.read_text()))


@needs_browser
def test_a_large_report_is_small_enough_and_soon_there(tmp_path):
    run = write_run(tmp_path / "run", clients=100, rounds=100)
    coalitions("report", run)
    report = run / "report.html"
    assert report.stat().st_size < 12e6
    timed = report.with_name("timed.html")
    timed.write_text(
        report.read_text().replace(
            "</body>",
            "<script>document.documentElement.dataset.ms = performance.now()</script></body>",
        )
    )
    began = time.monotonic()
    dom, complaints = browse(timed, tmp_path)
    assert complaints == []
    assert 'data-ready="true"' in dom
    assert time.monotonic() - began < 60


def test_runs_side_by_side_and_figures_as_files(tmp_path):
    first = write_run(tmp_path / "first", seed=1)
    second = write_run(tmp_path / "second", seed=1, finished=False)
    result = coalitions(
        "report", first, second, "--output", tmp_path / "both.html",
        "--figures", tmp_path / "figures", "--json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["runs"] == ["first", "second"]  # the same method and seed: told apart by folder
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"accuracy.png", "accuracy.svg", "relevance-1.png", "coalitions-2.svg"} <= names
    assert "not finished" in (tmp_path / "both.html").read_text()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda run: (run / "config.toml").unlink(), "it has no config.toml"),
        (lambda run: (run / "metrics.jsonl").write_text(""), "has not finished a round yet"),
        (lambda run: (run / "metrics.jsonl").write_text("{\n"), "a file of the run is damaged"),
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
