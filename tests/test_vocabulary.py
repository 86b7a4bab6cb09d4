"""The rules that all public functions and results of the games and the solvers keep.

A new one is found by itself. It fails here if it says nothing about how to call it, takes a graph,
a game or a structure in another way, or returns something else than a result.
"""

from __future__ import annotations

import functools
import inspect
import io
import json
import math
import pickle
import typing

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import coalitions
import solvers
from coalitions import (
    AirportGame,
    CoalitionStructure,
    Estimate,
    Estimates,
    InvalidInputError,
    PublicResult,
    SynergyGraph,
    TableGame,
    UnknownKeywordError,
    feature_games,
    shapley,
)

LABELS = ("ann", "bob", "cleo")
MATRIX = [[0, 3, 2], [3, 0, -4], [2, -4, 0]]
GRAPH = SynergyGraph(MATRIX, LABELS)
TABLE = TableGame.of(GRAPH.game())
SOLVED = solvers.solve(GRAPH)
STRUCTURE = [["ann", "bob"], ["cleo"]]

PUBLIC = {
    name: getattr(package, name)
    for package in (coalitions, solvers)
    for name in dir(package)
    if not name.startswith("_")
}
FUNCTIONS = {name: each for name, each in PUBLIC.items() if inspect.isfunction(each)}

MORE = {
    "beta_shapley": {"alpha": 1, "beta": 2},
    "semivalue": {"sizes": [0, 1, 0]},
    "top_k": {"k": 1},
    "core_membership": {"payoff": [0, 0, 1]},
    "core_point": {},
    "myerson": {"links": [("ann", "bob")]},
    "explain": {"player": "ann"},
    "what_if": {"together": [("ann", "cleo")]},
    "restricted": {"players": ["ann", "cleo"]},
    "reported": {"report": lambda rows: None},
    "verify_nucleolus": {"claim": coalitions.nucleolus(GRAPH)},
}
"""What a function needs beside a graph, a game and a structure."""


def parameters(function):
    return inspect.signature(function).parameters


def arguments(name, **given):
    """Return how to call a function, or fail: then `MORE` should say it."""
    more = dict(MORE.get(name, {}))
    for key in ("structure", "solution"):
        if key in parameters(FUNCTIONS[name]):
            more[key] = STRUCTURE
    needed = {
        key
        for key, each in parameters(FUNCTIONS[name]).items()
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    }
    call = {**more, **given}
    assert needed <= call.keys(), f"say in MORE how to call {name}: it needs {needed - call.keys()}"
    return call


def taking(first):
    """Return the names of the functions whose first parameter is called so."""
    names = (name for name, each in FUNCTIONS.items() if next(iter(parameters(each)), "") == first)
    return sorted({*names} - {"stored", "parallel", "to_shap", "to_shapiq"})


def plain(found):
    """Return an answer as something that can be compared, without what it cost and seconds."""
    if isinstance(found, PublicResult):
        found = found.to_dict()
    if isinstance(found, SynergyGraph):
        return found.matrix.round(9).tolist()
    if isinstance(found, np.ndarray):
        return found.round(9).tolist()
    if callable(found):  # a game
        return found(np.eye(found.n_players, dtype=bool)).tolist()
    if isinstance(found, dict):
        left_out = {"seconds", "evaluations", "method", "reason", "base", "text"}
        return {key: plain(each) for key, each in found.items() if key not in left_out}
    if isinstance(found, list | tuple):
        return [plain(each) for each in found]
    return round(found, 7) if isinstance(found, float) else found


def answer(name, **given):
    try:
        return plain(FUNCTIONS[name](**arguments(name, **given)))
    except coalitions.InfeasibleError:
        return "infeasible"


# ----------------------------------------------------------------------------------------
# Three ways in


@pytest.fixture(scope="module")
def in_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doors")
    GRAPH.write(folder / "graph.csv")
    document = {"values": TABLE.table.tolist(), "labels": LABELS}
    (folder / "table.json").write_text(json.dumps(document))
    return folder / "graph.csv", str(folder / "table.json")


@pytest.mark.parametrize("name", taking("graph"))
def test_every_function_of_graphs_takes_what_solve_takes(name, in_files):
    frame = pd.DataFrame(MATRIX, LABELS, LABELS)
    network = nx.relabel_nodes(nx.from_numpy_array(np.array(MATRIX)), dict(enumerate(LABELS)))
    expected = answer(name, graph=GRAPH)
    for graph in (frame, network, in_files[0], str(in_files[0]), GRAPH.game()):
        assert answer(name, graph=graph) == expected


@pytest.mark.parametrize("name", taking("game"))
def test_every_function_of_games_takes_graphs_and_tables(name, in_files):
    expected = answer(name, game=GRAPH)
    for game in (GRAPH.game(), pd.DataFrame(MATRIX, LABELS, LABELS), *in_files, TABLE):
        assert answer(name, game=game) == expected
    by_name = {"links", "players", "structure"}
    if not by_name & (MORE.get(name, {}).keys() | parameters(FUNCTIONS[name]).keys()):
        assert answer(name, game=np.array(MATRIX)) is not None
        assert answer(name, game=TABLE.table.tolist()) is not None


WITH_STRUCTURE = [
    (name, key)
    for name, each in FUNCTIONS.items()
    for key in ("structure", "solution", "warm_start", "one", "other", "fine", "coarse")
    if key in parameters(each) and name != "data_game"
]


@pytest.mark.parametrize(("name", "key"), WITH_STRUCTURE)
def test_every_function_of_structures_takes_solutions_and_lists(name, key):
    alike = {each: SOLVED for each in ("one", "other", "fine", "coarse")}
    first = {"graph": GRAPH, "game": GRAPH, **alike}
    given = {each: first[each] for each in parameters(FUNCTIONS[name]) if each in first}
    by_number = [[0, 1], [2]]
    structures = [SOLVED, CoalitionStructure(by_number), by_number]
    if not alike.keys() & given.keys():  # two structures know no names
        structures.append(STRUCTURE)
    answers = [answer(name, **{**given, key: structure}) for structure in structures]
    assert all(each == answers[0] for each in answers)


# ----------------------------------------------------------------------------------------
# Keywords and seeds


TAKE_KEYWORDS = sorted(
    name
    for name, each in FUNCTIONS.items()
    if any(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters(each).values())
)


@pytest.mark.parametrize("name", TAKE_KEYWORDS)
def test_unknown_keywords_are_refused_in_a_sentence(name):
    first = {key: GRAPH for key in ("graph", "game") if key in parameters(FUNCTIONS[name])}
    call = arguments(name, **first) if first and name not in ("stored", "parallel") else {}
    with pytest.raises(UnknownKeywordError, match="no_such_thing"):
        FUNCTIONS[name](**call, no_such_thing=1)


SYNONYMS = [
    (solvers.solve, "timeout", "time_limit"),
    (solvers.solve, "random_state", "seed"),
    (solvers.solve, "n_clusters", "n_groups"),
    (solvers.solve, "time_limi", "time_limit"),
    (solvers.solve_game, "timeout", "time_limit"),
    (shapley, "n_samples", "budget"),
    (shapley, "bugdet", "budget"),
    (coalitions.banzhaf, "random_state", "seed"),
]


@pytest.mark.parametrize(("function", "name", "meant"), SYNONYMS)
def test_what_other_libraries_call_it_is_understood_and_said(function, name, meant):
    with pytest.raises(UnknownKeywordError, match=f"did you mean '{meant}'"):
        function(GRAPH, **{name: 3})


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if "seed" in parameters(f)])
def test_a_seed_is_a_whole_number_or_a_generator(name):
    first = {key: GRAPH for key in ("graph", "game") if key in parameters(FUNCTIONS[name])}
    if not first:
        pytest.skip(f"{name} takes no graph and no game")
    assert answer(name, **first, seed=np.random.default_rng(3)) is not None
    for seed in (None, -1, "one"):
        with pytest.raises(InvalidInputError, match="seed"):
            answer(name, **first, seed=seed)


WITH_PROGRESS = [name for name, each in FUNCTIONS.items() if "progress" in parameters(each)]


@pytest.mark.parametrize("name", WITH_PROGRESS)
def test_progress_is_told_in_one_way(name):
    values = np.random.default_rng(3).normal(size=(2**8, 1)).sum(axis=1)
    game = coalitions.FunctionGame(lambda rows: values[rows @ (1 << np.arange(8))], 8)
    matrix = np.random.default_rng(3).normal(size=(90, 90))
    np.fill_diagonal(matrix, 0)
    graph = SynergyGraph(matrix, symmetrize="mean")
    seen = []
    more = {"time_limit": 2, "solver": "local-search"} if name == "solve" else {}
    sizes = {"sizes": [0, 1, *[0] * 6]} if name == "semivalue" else {}
    call = arguments(name, **({"graph": graph} if name == "solve" else {"game": game}))
    FUNCTIONS[name](**call | more | sizes, progress=seen.append)
    assert seen
    for state in seen:
        assert state.done >= 0
        assert state.total is None or state.done <= state.total
        assert state.text
    assert [state.done for state in seen] == sorted(state.done for state in seen)
    stream = io.StringIO()
    FUNCTIONS[name](**call | more | sizes, progress=coalitions.time_left(stream, every=0))
    assert stream.getvalue().splitlines()[0].startswith(seen[0].text.split()[0])


def test_what_means_nothing_to_a_function_is_refused_with_the_reason():
    for function, name, reason in (
        (solvers.solve_game, "seed", "draws nothing"),
        (solvers.solve_game, "threads", "parallel"),
        (solvers.solve_game, "solver", "one method"),
        (solvers.solve_overlapping, "seed", "draws nothing"),
    ):
        with pytest.raises(UnknownKeywordError, match=f"takes no {name}: .*{reason}"):
            function(GRAPH, **{name: 1})


def test_confidence_has_one_name():
    for function in (Estimate.interval, Estimate.rank_correlation, coalitions.top_k):
        assert parameters(function)["confidence"].default == 0.95
    assert parameters(coalitions.Interactions.interval)["confidence"].default == 0.95


def test_both_spellings_make_a_matrix_symmetric(tmp_path):
    slanted = [[0, 1], [3, 0]]
    both = [SynergyGraph(slanted, **{key: "sum"}) for key in ("symmetrize", "symmetrise")]
    assert [graph.matrix[0, 1] for graph in both] == [4, 4]
    (tmp_path / "slanted.csv").write_text("0,1\n3,0\n")
    assert SynergyGraph.read(tmp_path / "slanted.csv", symmetrize="max").matrix[0, 1] == 3
    arrows = nx.DiGraph([("a", "b", {"weight": 2}), ("b", "a", {"weight": 4})])
    assert SynergyGraph.from_networkx(arrows, symmetrize="mean").matrix[0, 1] == 3
    with pytest.raises(InvalidInputError, match="give one"):
        SynergyGraph(slanted, symmetrize="sum", symmetrise="sum")


def test_few_arguments_are_positional():
    """The object, its chief choice, and what is promised; the rest goes by name."""
    many = {
        name: [p.name for p in parameters(each).values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        for name, each in FUNCTIONS.items()
    }
    promised = {"interactions", "interaction_network"}
    of_models = {"data_game", "feature_game", "feature_games", "knn_game", "knn_shapley"}
    too_many = {
        name: each
        for name, each in many.items()
        if len(each) > 3 and name not in promised | of_models | {"column_game"}
    }
    assert not too_many


# ----------------------------------------------------------------------------------------
# Results


@functools.cache
def results():
    """Return an example of every public result."""
    games = feature_games(lambda rows: rows.prod(axis=1), [[2, 3], [4, 5]], [1, 1])
    rows = [shapley(game) for game in games]
    moved = coalitions.find_deviation(GRAPH, CoalitionStructure.singletons(3))
    fragile = solvers.fragile(GRAPH, SOLVED)
    sampled = shapley(AirportGame(range(1, 20)), "permutation", 200)
    share = coalitions.nucleolus(GRAPH)
    proof = solvers.solve(GRAPH, certificate=True).certificate
    return [
        shapley(GRAPH),
        sampled,
        coalitions.banzhaf(TABLE),
        coalitions.owen(GRAPH, STRUCTURE),
        coalitions.payoffs(TABLE, STRUCTURE),
        coalitions.myerson(GRAPH, [("ann", "bob")]),
        coalitions.knn_shapley([[0], [1], [5]], ["a", "b", "a"], [[0.2]], ["a"]),
        coalitions.leave_one_out(GRAPH),
        coalitions.core_point(TableGame([0, 0, 0, 1, 0, 1, 0, 1], LABELS)),
        coalitions.least_core(GRAPH),
        share,
        coalitions.verify_nucleolus(GRAPH, share),
        coalitions.core_membership(GRAPH, [1, 0, 0]),
        coalitions.interactions(GRAPH),
        coalitions.interactions(GRAPH, "SII", coalitions=[("ann", "cleo")]),
        coalitions.top_k(GRAPH, 1),
        coalitions.deviations(GRAPH, STRUCTURE),
        moved,
        Estimates(rows, games),
        sampled.rank_correlation(shapley(AirportGame(range(1, 20)))),
        SOLVED,
        solvers.solve(GRAPH, n_best=3, max_size=2),
        solvers.solve_game(TABLE),
        solvers.what_if(GRAPH, together=[("ann", "cleo")]),
        solvers.explain(GRAPH, SOLVED, "ann"),
        fragile,
        fragile[0],
        solvers.solve_overlapping(GRAPH),
        solvers.verify(GRAPH, SOLVED),
        solvers.verify(GRAPH, SOLVED, proof),
    ]


@pytest.fixture(scope="module", params=range(30), ids=lambda number: f"result {number}")
def result(request):
    return results()[request.param]


def test_the_examples_are_all_there_are():
    listed = results()
    assert len(listed) == 30
    kinds = {type(each) for each in listed}
    every = {each for each in subclasses(PublicResult) if not each.__module__.startswith("learn")}
    assert every <= kinds, f"give an example of {every - kinds}"


def subclasses(kind):
    return {kind for each in kind.__subclasses__() for kind in (each, *subclasses(each))}


def test_documents_are_plain_and_complete(result):
    document = result.to_dict()
    assert json.loads(result.to_json()) == plain_json(document)
    assert "NaN" not in result.to_json()
    assert "Infinity" not in result.to_json()


def plain_json(value):
    if isinstance(value, dict):
        return {str(key): plain_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain_json(each) for each in value]
    assert value is None or type(value) in (str, int, float, bool), f"{value!r} is not plain"
    assert not isinstance(value, float) or math.isfinite(value)
    return value


def test_tables_are_text_html_and_a_frame(result):
    assert str(result).strip()
    assert "object at 0x" not in str(result)
    assert result._repr_html_().startswith("<table>")
    assert isinstance(result.to_frame(), pd.DataFrame)
    assert len(result.to_frame())


def test_results_are_pickled_whole(result):
    again = pickle.loads(pickle.dumps(result))
    assert again.to_json() == result.to_json()
    assert str(again) == str(result)


def test_players_have_their_names(result):
    if hasattr(result, "named") and not isinstance(result, coalitions.Stability):
        names = [*LABELS, "0"]
        assert any(name in str(result.named) for name in names) or not result.named


def test_a_key_has_one_type_in_all_documents():
    kinds: dict[str, set[type]] = {}
    for each in results():
        note_kinds(each.to_dict(), kinds)
    assert {key: each for key, each in kinds.items() if len(each) > 1} == {}


def note_kinds(value, kinds):
    """Add the type of each key of a document, however deep; names of players are no keys."""
    if isinstance(value, list):
        for each in value:
            note_kinds(each, kinds)
    if isinstance(value, dict) and not {*value} & {*LABELS, "0"}:
        for key, each in value.items():
            if each is not None:
                kinds.setdefault(key, set()).add(float if type(each) is int else type(each))
                note_kinds(each, kinds)


def test_pictures_where_there_is_one():
    drawn = [each for each in results() if hasattr(each, "plot")]
    kinds = {type(each).__name__ for each in drawn}
    assert {"Estimate", "Interactions", "Estimates", "Solution", "WhatIf", "Top"} <= kinds


def test_shares_are_estimates():
    """No public function returns a bare array or a tuple of numbers of players."""
    arrays = {"all_coalitions", "as_coalitions", "partition_labels", "value_table"}
    for name, function in FUNCTIONS.items():
        returned = str(inspect.signature(function).return_annotation)
        if name not in arrays:
            assert "FloatVector" not in returned, f"{name} returns {returned}"
            assert "NDArray" not in returned, f"{name} returns {returned}"


def test_an_estimate_is_asked_by_name_and_becomes_an_array():
    shares = coalitions.owen(GRAPH, STRUCTURE)
    assert (shares["ann"], shares[0], len(shares)) == (shares.values[0], shares.values[0], 3)
    np.testing.assert_array_equal(np.asarray(shares), shares.values)
    np.testing.assert_array_equal(np.asarray(shares, np.float32), shares.values.astype("f4"))
    assert [*shares] == shares.values.tolist()
    assert shares.stderr.tolist() == [0.0] * 3
    assert isinstance(shares, Estimate)
    with pytest.raises(InvalidInputError, match="no player 'dora'"):
        shares["dora"]


def test_type_hints_can_be_read():
    """Editors complete the demands of functions that hand them on to `solve`."""
    for name in ("what_if", "explain", "fragile"):
        hint = parameters(FUNCTIONS[name])["demands"].annotation
        assert "Unpack" in str(hint)
    demands = solvers.demands.DemandArguments
    assert {"must_link", "max_size"} <= typing.get_type_hints(demands).keys()
