"""A proof holds for the demands of whoever asks, and everybody is told which they are."""

from __future__ import annotations

import itertools
import json

import pytest

from cli.games.verify import verify_command
from coalitions import CoalitionStructure, InvalidInputError, SynergyGraph
from solvers import Certificate, solve, verify
from solvers.drawing.solution_tables import structures_in_words
from tests.cli.games.test_solve import EXAMPLE
from tests.cli.typed import typed as coalitions

NAMES = ["ann", "bob", "cleo", "dan", "eve"]
MATRIX = [
    [0, 5, 1, -2, -4],
    [5, 0, 3, -1, 2],
    [1, 3, 0, 4, -3],
    [-2, -1, 4, 0, 6],
    [-4, 2, -3, 6, 0],
]
GRAPH = SynergyGraph(MATRIX, NAMES)


def proof(**demands: list[tuple[int, int]]) -> tuple[CoalitionStructure, Certificate]:
    solution = solve(GRAPH, "branch-and-cut", certify=True, **demands)
    assert solution.certificate is not None
    return solution.structure, solution.certificate


def test_a_demand_that_only_the_certificate_makes_is_refused():
    graph = SynergyGraph([[0, 5], [5, 0]], ["ann", "bob"])
    alone, forged = CoalitionStructure([[0], [1]]), Certificate(2, (), (), ((0, 1),))
    with pytest.raises(InvalidInputError, match="keep ann and bob apart, which is not demanded"):
        verify(graph, alone, forged)
    checked = verify(graph, alone, forged, cannot_link=[(1, 0)])
    assert checked.optimal
    assert (checked.must_link, checked.cannot_link) == ((), ((1, 0),))


def test_no_structure_is_proven_by_demands_that_nobody_made():
    for labels in itertools.product(range(2), repeat=5):
        structure = CoalitionStructure.from_labels(list(labels))
        together = [p for p in itertools.combinations(range(5), 2) if labels[p[0]] == labels[p[1]]]
        apart = [p for p in itertools.combinations(range(5), 2) if labels[p[0]] != labels[p[1]]]
        own = Certificate(5, (), tuple(together), tuple(apart))
        with pytest.raises(InvalidInputError, match="which is not demanded"):
            verify(GRAPH, structure, own)
        assert verify(GRAPH, structure, own, must_link=together, cannot_link=apart).optimal


@pytest.mark.parametrize(
    ("demands", "complaint"),
    [
        ({}, "keep ann and cleo together, which is not demanded"),
        ({"must_link": [(0, 2)]}, "keep dan and eve apart, which is not demanded"),
        ({"cannot_link": [(3, 4)]}, "keep ann and cleo together, which is not demanded"),
        (
            {"must_link": [(0, 2)], "cannot_link": [(3, 4), (0, 4)]},
            "does not keep ann and eve apart, which is demanded",
        ),
    ],
)
def test_a_proof_for_other_demands_is_refused_by_name(demands, complaint):
    structure, certificate = proof(must_link=[(0, 2)], cannot_link=[(3, 4)])
    with pytest.raises(InvalidInputError, match=complaint):
        verify(GRAPH, structure, certificate, **demands)


def test_a_proof_without_a_demand_is_refused_where_there_is_one():
    structure, certificate = proof()
    block = next(block for block in structure.coalitions if len(block) > 1)
    with pytest.raises(InvalidInputError, match="together, which is demanded"):
        verify(GRAPH, structure, certificate, must_link=[block[:2]])


def test_the_same_demands_in_other_words_are_the_same():
    structure, certificate = proof(must_link=[(0, 1), (1, 2)], cannot_link=[(2, 3)])
    checked = verify(
        GRAPH,
        structure,
        certificate,
        must_link=[(2, 0), (1, 0), (0, 1)],
        cannot_link=[(3, 0), (1, 3)],
    )
    assert checked.optimal


@pytest.mark.parametrize("with_proof", [False, True])
def test_a_structure_must_meet_the_demands_with_and_without_a_proof(with_proof):
    structure, certificate = proof()
    given = certificate if with_proof else None
    block = next(block for block in structure.coalitions if len(block) > 1)
    with pytest.raises(InvalidInputError, match=r"structure is refused: .* must be apart"):
        verify(GRAPH, structure, given, cannot_link=[block[:2]])
    other = next(k for k in range(5) if k not in block)
    with pytest.raises(InvalidInputError, match=r"structure is refused: .* must be together"):
        verify(GRAPH, structure, given, must_link=[(block[0], other)])


@pytest.mark.parametrize("pair", [(0, 7), (-1, 0), (0, 0), (0,), ()])
def test_demands_must_be_groups_of_two_players_or_more(pair):
    with pytest.raises(InvalidInputError, match="cannot_link"):
        verify(GRAPH, CoalitionStructure.singletons(5), cannot_link=[pair])


def test_a_solution_knows_its_demands():
    solution = solve(GRAPH, must_link=[(0, 2)], cannot_link=[(3, 4)])
    assert (solution.must_link, solution.cannot_link) == (((0, 2),), ((3, 4),))
    free = solve(GRAPH)
    assert (free.must_link, free.cannot_link) == ((), ())


def test_weights_of_players_who_must_be_together_do_not_blur_the_proof():
    # They are worth −1e16 in any case: beside that, 3 and 2 would be one number.
    graph = SynergyGraph([[0, -1e16, 3, 0], [-1e16, 0, 0, 0], [3, 0, 0, 2], [0, 0, 2, 0]])
    demands = {"must_link": [(0, 1)]}
    best = solve(graph, "branch-and-cut", certify=True, **demands)
    assert best.structure.coalitions == ((0, 1, 2, 3),)
    assert verify(graph, best.structure, best.certificate, **demands).optimal
    worse = CoalitionStructure([[0, 1], [2, 3]])
    with pytest.raises(InvalidInputError, match="made for a structure worth more"):
        verify(graph, worse, best.certificate, **demands)
    document = best.certificate.to_json()
    for part in document["parts"]:
        part["value"] = 0
    assert not verify(graph, worse, Certificate.from_json(document), **demands).optimal


# --- words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("demands", "words"),
    [
        (([], []), None),
        (([], [(0, 1)]), "structures that keep ann and bob apart"),
        (([(2, 3)], []), "structures that keep cleo and dan together"),
        (
            ([(2, 3)], [(0, 1), (0, 4)]),
            "structures that keep ann and bob, ann and eve apart, and cleo and dan together",
        ),
        (
            ([], [(0, k) for k in range(1, 5)]),
            "structures that keep ann and bob, ann and cleo, ann and dan and 1 more pair apart",
        ),
        (([], [], 3, 1, 2), "structures of 3 coalitions with 1 to 2 players each"),
        (([], [], None, 2, None), "structures with at least 2 players each"),
        (([], [(0, 1)], 1), "structures of 1 coalition that keep ann and bob apart"),
    ],
)
def test_demands_in_words(demands, words):
    assert structures_in_words(NAMES, *demands) == words


# --- the command line ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demands")
    GRAPH.write(folder / "g.csv")
    result = coalitions(
        "solve", "g.csv", "--cannot-link", "dan,eve", "--must-link", "ann,bob,cleo",
        "--output", "s.json", "--certificate", "c.json", cwd=folder,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return folder, result.stdout


STATEMENT = (
    "optimal among structures that keep dan and eve apart,"
    " and ann and bob, ann and cleo, bob and cleo together"
)


def test_solve_says_among_what_a_structure_is_optimal_and_records_it(solved):
    folder, printed = solved
    assert STATEMENT in printed
    assert "no structure is worth more" not in printed
    document = json.loads((folder / "s.json").read_text())
    assert document["cannot_link"] == [["dan", "eve"]]
    assert document["must_link"] == [["ann", "bob"], ["ann", "cleo"], ["bob", "cleo"]]


def test_verify_takes_the_demands_of_the_file_and_tells_them(solved):
    folder, _ = solved
    result = coalitions("verify", "g.csv", "s.json", "--certificate", "c.json", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert STATEMENT in result.stdout
    flags = ("--must-link", "bob,ann", "--must-link", "cleo,bob", "--cannot-link", "eve,dan")
    result = coalitions(
        "verify", "g.csv", "s.json", "--certificate", "c.json", *flags, "--json", cwd=folder
    )
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["optimal"] is True
    assert document["must_link"] == [["bob", "ann"], ["cleo", "bob"]]
    assert document["cannot_link"] == [["eve", "dan"]]
    assert document["statement"].startswith("optimal among structures that keep eve and dan apart")


@pytest.mark.parametrize(
    ("together", "apart", "sentence"),
    [
        ([], ["dan,eve"], "was made to keep ann and bob together"),
        (["ann,bob,cleo"], [], "was made to keep dan and eve apart"),
        (["ann,bob,cleo"], ["dan,eve", "ann,eve"], "was not made to keep ann and eve apart"),
        ([], ["dan,zoe"], "there is no player 'zoe'"),
        ([], ["dan"], "--cannot-link takes two names"),
    ],
)
def test_flags_that_demand_something_else_are_refused(solved, together, apart, sentence):
    folder, _ = solved
    with pytest.raises(InvalidInputError, match=sentence):
        verify_command(
            str(folder / "g.csv"), folder / "s.json", must_link=together, cannot_link=apart
        )


def test_a_file_whose_demands_were_dropped_does_not_fit_its_proof(solved):
    folder, _ = solved
    document = json.loads((folder / "s.json").read_text())
    for key in ("must_link", "cannot_link"):
        changed = {name: entry for name, entry in document.items() if name != key}
        (folder / "changed.json").write_text(json.dumps(changed))
        with pytest.raises(InvalidInputError, match="which is not demanded"):
            verify_command(str(folder / "g.csv"), folder / "changed.json", folder / "c.json")


@pytest.mark.parametrize(
    ("key", "entry", "sentence"),
    [
        ("must_link", 3, '"must_link" must be a list of pairs of names'),
        ("cannot_link", [["dan"]], '"cannot_link" must be a list of pairs of names'),
        ("cannot_link", [["dan", "zoe"]], "there is no player 'zoe'"),
        ("max_size", 2, "has 4 players, but 1 to 2 must be"),
        ("max_size", "2", '"max_size" must be a whole number'),
        ("n_groups", 1, "coalitions, but 1 must be"),
        ("n_groups", [1, 2, 3], "the least and the largest"),
        ("weights", [1, 2], '"weights" must be an object of names and numbers'),
        ("weights", {"zoe": 1}, "there is no player 'zoe'"),
        ("max_weight", 3, "belong together"),
        ("at_least_one_of", ["ann"], '"at_least_one_of" must be a list of lists of names'),
        ("at_least_one_of", [["zoe"]], "there is no player 'zoe'"),
    ],
)
def test_damaged_demands_in_a_file_get_a_sentence(solved, key, entry, sentence):
    folder, _ = solved
    document = json.loads((folder / "s.json").read_text())
    (folder / "odd.json").write_text(json.dumps({**document, key: entry}))
    with pytest.raises(InvalidInputError, match=sentence):
        verify_command(str(folder / "g.csv"), folder / "odd.json")


def test_sizes_are_said_and_recorded_too(tmp_path):
    out = tmp_path / "s.json"
    result = coalitions("solve", EXAMPLE, "--max-size", "4", "--output", out, "--solver", "cp-sat",
        "--formulation", "full")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "optimal among structures with at most 4 players each" in result.stdout
    assert json.loads(out.read_text())["max_size"] == 4
    assert coalitions("verify", EXAMPLE, out).returncode == 0
