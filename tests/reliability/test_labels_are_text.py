"""Labels are text: in the terminal, in pictures and on pages they are shown, and do nothing."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import struct
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from cli.app import app, main
from cli.terminal.output import visible
from coalitions import SynergyGraph
from solvers import solve
from solvers.drawing.solution_picture import draw_solution
from tests.cli.browser import Browser, needs_browser
from tests.cli.report.test_report import ALL_DRAWN, write_run
from tests.cli.said import but_for_compiling

HOSTILE = (
    '<b style="background:url(https://evil.example/b)">z</b>',
    "b<i>x",
    '<a href="https://evil.example/">click</a>',
    "<img src=https://evil.example/i onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "&lt;b&gt; & &amp;",
    "%{z} %{x}",
    "$x_{$",
    "$\\frac$",
    "a\x1b[31mred\x1b]0;title\x07",
    "c1 \x9b31m",
    "r\u202egnp.exe",
    "[red]x[/red]",
    "[link=https://evil.example]y[/link]",
    ":warning:",
    "two\nvalue 99   optimal",
    "\"quoted' \\",
)
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def hostile_graph():
    n = len(HOSTILE)
    matrix = np.where(np.add.outer(np.arange(n), np.arange(n)) % 2, -1.0, 1.0)
    np.fill_diagonal(matrix, 0.0)
    return SynergyGraph(matrix, HOSTILE)


# the terminal


@pytest.fixture
def typed(tmp_path, monkeypatch, capsys):
    """Type a command in this process; the terminal is wide, so that nothing is wrapped."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "2000")
    graph = hostile_graph()
    document = {"labels": list(graph.labels), "matrix": graph.matrix.tolist()}
    (tmp_path / "graph.json").write_text(json.dumps(document))

    def type_(*arguments):
        monkeypatch.setattr(sys, "argv", ["coalitions", *map(str, arguments)])
        monkeypatch.setattr(app, "registered_commands", [])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return end.value.code, printed.out, but_for_compiling(printed.err)

    return type_


@pytest.mark.parametrize(
    "command",
    [
        ("solve", "graph.json", "--solver", "greedy"),
        ("shapley", "graph.json"),
        ("value", "graph.json", "--concept", "banzhaf"),
        ("value", "graph.json", "--concept", "shapley-interaction"),
    ],
)
def test_tables_show_every_label_literally(command, typed):
    code, out, err = typed(*command)
    assert code == 0, err
    assert not ACTING.search(out + err)
    for label in HOSTILE:
        assert visible(label) in out
    assert not re.search(r"^value 99", out, re.MULTILINE)


def test_a_verified_statement_shows_its_players_literally(typed):
    for label in HOSTILE[1:]:
        if "," in label or label != label.strip():  # a flag cannot name it
            continue
        demand = ("--cannot-link", f"{HOSTILE[0]},{label}")
        files = ("solution.json", "--certificate", "proof.json")
        code, _, err = typed("solve", "graph.json", *demand, "--output", *files)
        assert code == 0, err
        code, out, err = typed("verify", "graph.json", *files)
        assert code == 0, err
        assert not ACTING.search(out + err)
        assert f"optimal among structures that keep {visible(HOSTILE[0])}" in out
        assert visible(label) in out


def test_a_deviation_shows_its_players_literally(typed, tmp_path):
    for pair in itertools.pairwise(HOSTILE):
        graph = {"labels": pair, "matrix": [[0, 1], [1, 0]]}
        (tmp_path / "two.json").write_text(json.dumps(graph))
        (tmp_path / "apart.json").write_text(json.dumps({"coalitions": [[x] for x in pair]}))
        code, out, err = typed("stability", "two.json", "apart.json", "--notion", "nash")
        assert code == 0, err
        assert not ACTING.search(out + err)
        assert visible(pair[0]) in out


def test_json_says_the_same_without_a_character_that_acts(typed, tmp_path):
    code, out, err = typed("solve", "graph.json", "--json", "--output", "s.json")
    assert code == 0, err
    assert not ACTING.search(out)
    for text in (out, (tmp_path / "s.json").read_text()):
        players = [name for block in json.loads(text)["coalitions"] for name in block]
        assert sorted(players) == sorted(HOSTILE)


def test_half_a_character_does_not_end_a_command(typed, tmp_path):
    half = {"labels": ["\ud800", "b"], "matrix": [[0, 1], [1, 0]]}
    (tmp_path / "half.json").write_text(json.dumps(half))
    code, _, err = typed("solve", "half.json", "--json", "--output", "s.json", "--plot", "p.html")
    assert code in (0, 2), err
    assert "Internal error" not in err
    if code == 0:
        assert json.loads((tmp_path / "s.json").read_text())["players"] == 2


@pytest.mark.parametrize("label", HOSTILE)
def test_complaints_repeat_names_without_obeying_them(label, typed):
    code, _, err = typed("solve", "graph.json", "--must-link", f"{label},nobody{label}")
    assert code == 2
    assert not ACTING.search(err)
    code, _, err = typed("solve", f"no/{label}.csv")
    assert code == 2
    assert not ACTING.search(err)
    assert len(err.splitlines()) == 1


# pictures


def test_a_picture_is_drawn_whatever_the_labels_are(tmp_path):
    graph = hostile_graph()
    draw_solution(graph, solve(graph, "greedy"), tmp_path / "p.png")
    width, height = struct.unpack(">II", (tmp_path / "p.png").read_bytes()[16:24])
    assert min(width, height) > 800


def test_dollars_in_a_picture_are_not_a_formula(tmp_path):
    """`a$b$c` as a formula is `abc` in italics; as text it is wider than `abc` written plainly."""
    from coalitions.drawing.pictures import plain_style

    @plain_style()
    def width(text):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure()
        canvas = FigureCanvasAgg(figure)
        return figure.text(0, 0, text).get_window_extent(canvas.get_renderer()).width

    assert width("a$b$c") > width("abc") + 10


# pages


class Page(HTMLParser):
    """The parts of a page that matter here."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.policy, self.scripts, self.data, self.addresses, self.tags = "", [], "", [], set()
        self._kind = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.add(tag)
        self.addresses += [found[key] for key in ("src", "href", "action") if key in found]
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]
        self._kind = found.get("type", "code") if tag == "script" else None

    def handle_endtag(self, tag):
        self._kind = None

    def handle_data(self, text):
        if self._kind == "code":
            self.scripts.append(text)
        elif self._kind is not None:
            self.data += text


def check_policy(page):
    rules = dict(part.split(None, 1) for part in page.policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data: blob:"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert set(rules) == {
        "default-src", "script-src", "style-src", "img-src", "base-uri", "form-action",
    }  # fmt: skip
    hashes = [hashlib.sha256(script.encode()).digest() for script in page.scripts]
    allowed = [f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes]
    assert rules["script-src"].split() == allowed
    assert page.addresses == []


def strings_in(document):
    if isinstance(document, str):
        yield document
    elif isinstance(document, (list, dict)):
        for each in document.values() if isinstance(document, dict) else document:
            yield from strings_in(each)


@pytest.fixture
def plot(tmp_path):
    graph = hostile_graph()
    draw_solution(graph, solve(graph, "greedy"), tmp_path / "p.html")
    return tmp_path / "p.html"


@pytest.fixture
def report(tmp_path):
    run = write_run(tmp_path / "run", clients=len(HOSTILE))
    clients = json.loads((run / "clients.json").read_text())
    for client, label in zip(clients, HOSTILE, strict=True):
        client["domain"] = label
    (run / "clients.json").write_text(json.dumps(clients))
    config = (run / "config.toml").read_text()
    config = config.replace('"cffl"', json.dumps(HOSTILE[0])).replace(
        '"ring:2"', json.dumps(HOSTILE[2])
    )
    (run / "config.toml").write_text(config)
    (run / "environment.json").write_text(json.dumps({HOSTILE[3]: HOSTILE[11]}))
    (run / "relevance.npy").rename(run / "<i>%{x}.npy")
    return run


def made(typed, run):
    code, _, err = typed("report", run, "--plots", run / "figures")
    assert code == 0, err
    return run / "report.html"


def test_a_plot_may_fetch_nothing_and_holds_no_mark_up(plot):
    page = Page(plot.read_text())
    check_policy(page)
    told = list(strings_in(json.loads(page.data)["data"]))
    assert {"b&lt;i&gt;x", "&amp;lt;b&amp;gt; &amp; &amp;amp;"} <= set(told)
    assert not [text for text in told if re.search("<(?!/?extra>)", text)]
    assert not [text for text in told if ACTING.search(text)]


def test_a_report_may_fetch_nothing_and_holds_no_mark_up(report, typed):
    page = Page(made(typed, report).read_text())
    check_policy(page)
    charts = json.loads(page.data)["charts"]
    names = {chart.pop("name") for chart in charts}  # ids, which are never shown
    assert "<i>%{x}" in names
    told = list(strings_in(charts))
    assert any("b&lt;i&gt;x" in text for text in told)
    assert not [text for text in told if "<" in text or ACTING.search(text)]
    assert page.tags.isdisjoint({"a", "b", "i", "img", "iframe", "link"})


def outside(browser):
    return [address for address in browser.requests if not address.startswith(("file:", "data:"))]


SHOWN = "[...document.querySelectorAll('text')].map((each) => each.textContent)"
HOVERED = """(async () => {
  const plot = document.getElementById("plot"), told = [];
  for (let k = 0; k < plot._fullData.at(-2).x.length; k++) {
    Plotly.Fx.hover(plot, [{ curveNumber: plot.data.length - 2, pointNumber: k }], "xy");
    await new Promise((done) => setTimeout(done, 120));
    told.push(...[...document.querySelectorAll(".hovertext text")].map((e) => e.textContent));
  }
  return told;
})()"""


@needs_browser
def test_a_browser_shows_a_plots_labels_literally_and_asks_nobody(plot, tmp_path):
    with Browser(tmp_path / "profile") as browser:
        browser.open(plot)
        shown = browser.evaluate(SHOWN)
        for label in HOSTILE:
            assert visible(label) in [text.replace("\xa0", " ") for text in shown]
        told = " ".join(browser.evaluate(HOVERED)).replace("\xa0", " ")
        assert "b<i>x: in a coalition of" in told
        assert "%{z} %{x}: in a coalition of" in told
        assert browser.evaluate("document.querySelectorAll('svg a, img').length") == 0
        assert outside(browser) == []
        assert browser.complaints == []


@needs_browser
def test_a_browser_shows_a_reports_labels_literally_and_asks_nobody(report, typed, tmp_path):
    page = made(typed, report)
    with Browser(tmp_path / "profile") as browser:
        browser.open(page)
        assert browser.evaluate(ALL_DRAWN)
        shown = [text.replace("\xa0", " ") for text in browser.evaluate(SHOWN)]
        for number, label in enumerate(HOSTILE):
            assert any(f"{number} {visible(label)}" == text for text in shown), label
        assert HOSTILE[2] in browser.evaluate("document.body.innerText")
        assert browser.evaluate("document.querySelectorAll('a, svg image[href^=http]').length") == 0
        assert outside(browser) == []
        assert browser.complaints == []
        page_policy = "document.querySelector('meta[http-equiv]').content"
        assert "'unsafe-inline'" not in browser.evaluate(page_policy).split(";")[1]


@needs_browser
def test_the_policy_stops_a_script_and_a_picture_that_got_in_all_the_same(plot, tmp_path):
    text = plot.read_text()
    foreign = "<script>window.ran = 1</script><img src='https://evil.example/i'>"
    (tmp_path / "spoilt.html").write_text(
        text.replace('<div id="plot">', foreign + '<div id="plot">')
    )
    with Browser(tmp_path / "profile") as browser:
        browser.open(tmp_path / "spoilt.html")
        assert browser.evaluate("window.ran === undefined && typeof Plotly === 'object'")
        assert any("Content Security Policy" in each for each in browser.complaints)
