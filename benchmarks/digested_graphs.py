"""Cases of `digests`: graphs of all kinds, what every solver says of them, and files.

A case is a name and a function of no arguments.
"""

import dataclasses
import itertools
import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import coalitions as co
from solvers import (
    Solution,
    available,
    explain,
    fragile,
    solve,
    solve_overlapping,
    verify,
    what_if,
)

NOT_NUMBERS = {"seconds", "reason", "text", "stats"}
"""What a command prints that depends on the clock, or says in words what others say in numbers."""


def _never(much):
    """Return weights of which some forbid a pair: people write "never" as −1e9 or −1e16."""
    return lambda rng, m: np.where(rng.random(m) < 0.2, -much, rng.normal(0, 1, m))


def _blocks(rng, m):
    n = round((1 + (1 + 8 * m) ** 0.5) / 2)
    i, j = np.triu_indices(n, 1)
    return np.where(i % 3 == j % 3, 0.3, -0.15) + 0.2 * rng.normal(size=m)


KINDS = {
    "normal": lambda rng, m: rng.normal(size=m),
    "low": lambda rng, m: rng.normal(-1, 1, m),
    "tenths": lambda rng, m: rng.integers(-20, 21, m) / 10,
    "whole": lambda rng, m: rng.integers(-9, 10, m),
    "ties": lambda rng, m: rng.integers(-1, 2, m),
    "blocks": _blocks,
    "some": lambda rng, m: np.where(rng.random(m) < 0.25, rng.normal(0.2, 1, m), 0),
    "zero": lambda rng, m: np.zeros(m),
    "negative": lambda rng, m: -np.abs(rng.normal(size=m)),
    "one": lambda rng, m: np.where(np.arange(m) == m // 2, 0.5, -np.abs(rng.normal(size=m))),
    "tiny": lambda rng, m: rng.normal(size=m) * 1e-9,
    "mixed": lambda rng, m: rng.normal(-0.3, 1, m) * 10.0 ** rng.uniform(-6, 6, m),
    "-1e9": _never(1e9),
    "-1e16": _never(1e16),
}
FEW = ("normal", "tenths", "ties", "-1e16")


def graph(kind, n, seed=0, sparse=False):
    """Return a graph of a kind whose players are called p0, p1 and so on."""
    rng = np.random.default_rng([n, seed, list(KINDS).index(kind)])
    i, j = np.triu_indices(n, 1)
    weight = np.asarray(KINDS[kind](rng, len(i)), float)
    names = [f"p{player}" for player in range(n)]
    if sparse:
        kept = weight != 0
        return co.SynergyGraph.from_edges(n, i[kept], j[kept], weight[kept], names)
    matrix = np.zeros((n, n))
    matrix[i, j] = matrix[j, i] = weight
    return co.SynergyGraph(matrix, names)


def scattered(n, degree, seed=0):
    """Return a sparse graph of many players, each with a few others."""
    rng = np.random.default_rng([n, seed])
    pairs = np.unique(np.sort(rng.integers(0, n, (n * degree // 2, 2)), axis=1), axis=0)
    i, j = pairs[pairs[:, 0] < pairs[:, 1]].T
    return co.SynergyGraph.from_edges(n, i, j, rng.normal(0.1, 1, len(i)))


def demands(n):
    """Return demands of every kind on n ≥ 7 players, and some of them together."""
    loads = [1 + player % 3 for player in range(n)]
    links = {"must_link": [(0, 3), (3, "p5")], "cannot_link": [("p0", "p1"), (2, 6)]}
    roles = {"at_least_one_of": [("p0", 1, 2), (4, 5, 6)]}
    return {
        "links": links,
        "must": {"must_link": links["must_link"]},
        "cannot": {"cannot_link": links["cannot_link"]},
        "most": {"max_size": 3},
        "least": {"min_size": 2},
        "sizes": {"min_size": 2, "max_size": 4},
        "groups": {"n_groups": 3},
        "range": {"n_groups": (2, 4), "max_size": n - 2},
        "loads": {"weights": loads, "max_weight": 6},
        "names": {"weights": {f"p{i}": load for i, load in enumerate(loads)}, "max_weight": 7.5},
        "roles": roles,
        "teams": {"n_groups": 2, **roles, "cannot_link": [(0, 4)]},
        "all": {**links, "min_size": 2, "max_size": 5, "weights": loads, "max_weight": 12},
        "impossible": {"n_groups": 2, "max_size": 2},
    }


def proven(weights, /, **asked):
    """Return a solution with its certificate, and what the verifier says of it."""
    solution = solve(weights, certificate=True, **asked)
    checked = verify(weights, solution.structure, solution.certificate, **asked)
    return solution, solution.certificate, checked


def solving():
    for kind in KINDS:
        for solver, sizes in {
            "auto": (13, 22),
            "branch-and-price": (9, 14),
            "local-search": (12, 40),
            "greedy": (12, 60),
            "brute-force": (7,),
        }.items():
            for n in sizes:
                yield f"solve/{solver}/{kind}/{n}", partial(solve, graph(kind, n), solver)
        yield f"certificate/{kind}", partial(proven, graph(kind, 12, 1))
    for kind, solver in itertools.product(FEW, ("highs", "cbc", "cp-sat", "gurobi")):
        for options in ({}, {"formulation": "full"}):
            ask = partial(solve, graph(kind, 8), solver, **options)
            name = f"solve/{solver}{'-full' if options else ''}/{kind}"
            yield name, ask if available()[solver] is True else lambda: "not installed"
    for n in (300, 2500):
        yield f"sparse/auto/{n}", partial(solve, scattered(n, 2))
        yield f"sparse/local-search/{n}", partial(solve, scattered(n, 6), "local-search", seed=4)
        yield f"sparse/greedy/{n}", partial(solve, scattered(n, 6), "greedy")
    yield "sparse/certificate/60", partial(proven, scattered(60, 4))
    yield "sparse/same-as-dense", partial(solve, graph("some", 30, sparse=True))
    yield "solve/forty", partial(solve, graph("blocks", 40))
    yield "solve/matrix", partial(solve, [[0, 3, -2], [3, 0, -2], [-2, -2, 0]])
    yield "solve/alone", partial(proven, [[0]])
    yield "solve/gap", partial(solve, graph("normal", 26), gap=0.2)
    for seed, effort in ((1, 0.5), (2, 2.0)):
        yield (
            f"solve/effort/{effort}",
            partial(solve, graph("low", 50), "local-search", seed=seed, effort=effort),
        )


def demanding():
    more = demands(20)
    for name, asked in demands(9).items():
        for solver in ("auto", "local-search", "brute-force", "greedy", "branch-and-price"):
            ask = partial(solve, graph("tenths", 9, 2), solver, **asked)
            yield f"demands/{solver}/{name}", ask
        for kind in ("normal", "whole", "-1e9", "-1e16"):
            yield f"demands/certificate/{name}/{kind}", partial(proven, graph(kind, 9, 3), **asked)
        yield f"demands/verify/{name}", partial(_refused, graph("normal", 9), asked)
        if name in ("links", "sizes", "teams", "loads", "all"):
            listing = partial(solve, graph("ties", 9, 4), **asked)
            yield f"demands/n-best/{name}", partial(listing, n_best=4)
            yield f"demands/canonical/{name}", partial(listing, canonical=True)
            wish = partial(what_if, graph("whole", 9, 5), **asked)
            yield f"demands/what-if/{name}", partial(wish, together=[("p2", "p4")])
            yield f"demands/larger/{name}", partial(solve, graph("normal", 20), **more[name])
    for solver in ("highs", "cp-sat"):
        ask = partial(solve, graph("whole", 7), solver, formulation="full", max_size=3, n_groups=3)
        yield f"demands/{solver}", ask


def _refused(weights, asked):
    """Return what the verifier says of a structure that meets no demand but links."""
    return verify(weights, co.CoalitionStructure.grand(weights.n_players), **asked)


def asking():
    for kind in FEW:
        weights = graph(kind, 10, 6)
        best = partial(solve, weights)
        yield f"n-best/{kind}", partial(best, n_best=6)
        yield f"n-best/certificate/{kind}", partial(best, n_best=3, certificate=True)
        yield f"canonical/{kind}", partial(best, canonical=True)
        yield f"what-if/together/{kind}", partial(what_if, weights, together=[(0, 1, 2)])
        yield f"what-if/apart/{kind}", partial(what_if, weights, apart=[("p0", "p1"), (4, 5)])
        yield (
            f"what-if/price/{kind}",
            partial(what_if, weights, "branch-and-price", together=[(3, 7)], apart=[(0, 9)]),
        )
        for fragility in (False, True):
            words = partial(_why, weights, fragility)
            yield f"explain/{'fragile' if fragility else 'plain'}/{kind}", words
        yield f"fragile/{kind}", partial(_fragile, weights)
        yield f"fragile/sizes/{kind}", partial(_fragile, weights, max_size=4, must_link=[(1, 8)])
        for start in ([[0, 1, 2], [3, 4], [5, 6, 7, 8, 9]], best):
            ask = partial(_warm, weights, start)
            yield f"warm-start/{'best' if start is best else 'lists'}/{kind}", ask
        yield f"overlap/{kind}", partial(solve_overlapping, weights)
        yield f"overlap/three/{kind}", partial(solve_overlapping, weights, 3, 0.3, max_size=4)
        yield f"overlap/meetings/{kind}", partial(solve_overlapping, weights, 2, 0.5, meetings=None)
        yield f"stability/{kind}", partial(_stability, weights)
    yield "all-optimal/ties", partial(solve, graph("ties", 7, 7), all_optimal=True)
    yield "all-optimal/zero", partial(solve, graph("zero", 4), all_optimal=True, n_best=9)


def _why(weights, fragility):
    solution = solve(weights)
    return [
        explain(weights, solution, player, fragile_pairs=fragility, time_limit=None)
        for player in ("p0", 3)
    ]


def _fragile(weights, **asked):
    return fragile(weights, solve(weights, **asked), "p2")


def _warm(weights, start):
    start = start() if callable(start) else start
    solvers = ("auto", "branch-and-price", "local-search", "greedy")
    return [solve(weights, solver, warm_start=start) for solver in solvers]


def _stability(weights):
    structure = solve(weights, "greedy").structure
    others = co.CoalitionStructure.from_labels(np.arange(10) % 3)
    game = weights.game()
    return [
        *(co.deviations(what, one) for what in (weights, game) for one in (structure, others)),
        *(co.find_deviation(weights, others, notion) for notion in co.NOTIONS),
        co.payoffs(weights, structure),
        co.owen(game, structure),
        *(co.join(structure, others), co.meet(structure, others), co.refines(structure, others)),
        co.adjusted_rand_index(structure, others),
        co.normalized_mutual_information(structure, others),
    ]


def files():
    endings = ("csv", "tsv", "json", "npy", "npz", "edges", "graphml")
    for ending, (name, weights) in itertools.product(
        endings, {"dense": graph("tenths", 8), "sparse": graph("some", 8, sparse=True)}.items()
    ):
        yield f"files/{ending}/{name}", partial(_round_trip, weights, ending)
    for ending in ("csv", "json", "md", "html"):
        yield f"files/solution/{ending}", partial(_solution_file, ending)
    yield "files/networkx", lambda: co.SynergyGraph.from_networkx(graph("whole", 9).to_networkx())
    yield "files/symmetrised", partial(co.SynergyGraph, [[0, 1], [4, 0]], symmetrise="mean")
    yield "files/threshold", partial(co.SynergyGraph, [[1, 0.5], [0.5, 1]], threshold=0.3)
    graph_and = ("graph.csv", "solution.json")
    commands = {
        "solve": ("solve", "graph.csv", "--n-best", "2", "--json"),
        "solve-sizes": ("solve", "graph.csv", "--max-size", "3", "--json"),
        "verify": ("verify", *graph_and, "--certificate", "proof.json", "--json"),
        "stability": ("stability", *graph_and, "--json"),
        "explain": ("explain", *graph_and, "p1", "--time-limit", "60", "--json"),
        "what-if": ("what-if", "graph.csv", "--together", "p0,p1", "--json"),
        "shapley": ("shapley", "graph.csv", "--json"),
        "value": ("value", "graph.csv", "--concept", "prenucleolus", "--json"),
    }
    for name, command in commands.items():
        yield f"command/{name}", partial(_command, command)


def _round_trip(weights, ending):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"graph.{ending}")
        weights.write(path)
        packed = ending == "npz"  # with the hour at which it was written
        return co.SynergyGraph.read(path), None if packed else path.read_bytes()


def _solution_file(ending):
    weights = graph("tenths", 10)
    solution = solve(weights, max_size=4, cannot_link=[(0, 1)], certificate=True)
    # Two files have what depends on the clock; and a time that is the same in every run.
    solution = dataclasses.replace(solution, seconds=1.0, stats={})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"solution.{ending}")
        solution.save(path)
        return path.read_bytes(), Solution.read(path, weights) if ending == "json" else None


def _command(command):
    """Return what a command prints, without sentences and seconds."""
    root = Path(co.__file__).resolve().parents[1]
    program = [str(Path(sys.executable).with_name("coalitions"))]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with tempfile.TemporaryDirectory() as folder:
        start = partial(subprocess.run, cwd=folder, env=environment, capture_output=True, text=True)
        weights = graph("tenths", 9)
        weights.write(Path(folder, "graph.csv"))
        solution = solve(weights, certificate=True)
        solution.save(Path(folder, "solution.json"))
        solution.certificate.write(Path(folder, "proof.json"))
        done = start(program + list(command))
        return done.returncode, _without_words(json.loads(done.stdout))


def _without_words(document):
    if isinstance(document, dict):
        kept = (key for key in document if key not in NOT_NUMBERS)
        return {key: _without_words(document[key]) for key in kept}
    return [*map(_without_words, document)] if isinstance(document, list) else document
