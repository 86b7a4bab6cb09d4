"""Tables of natural clients: schema, scaling inside each client, test rows, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coalitions.errors import CoalitionError, InvalidInputError
from coalitions.files.records import with_days
from learners.data.own.columns import client_tables
from learners.data.own.encode_table import TableSettings, encode_table
from learners.data.own.paths import PathSettings, read_path
from learners.data.own.schema import read_schema
from learners.data.own.table_files import read_table


def hospitals(rows_each=10, seed=0):
    """Return the lines of a table of three hospitals, with blanks and categories."""
    rng = np.random.default_rng(seed)
    yield "id,hospital,age,sex,ward,died"
    number = 0
    for hospital in ("c10", "c9", "a"):
        for row in range(rows_each):
            number += 1
            age = "" if row == 3 else f"{rng.normal(50 + 10 * len(hospital), 9):.2f}"
            sex = "f" if row % 2 else "m"
            ward = "burns" if hospital == "a" else "" if row == 1 else "heart"
            yield f"{number},{hospital},{age},{sex},{ward},{'yes' if row % 5 == 0 else 'no'}"


@pytest.fixture
def deal(tmp_path):
    def deal(lines, test=None, name="patients.csv", client_column="hospital", **asked):
        path = tmp_path / name
        content = lines if isinstance(lines, str) else "\n".join(lines)
        path.write_text(content)
        tested = None
        if test is not None:
            (tmp_path / "test.csv").write_text(test)
            tested = read_table(tmp_path / "test.csv")
        asked = {"target": "died"} | asked
        question = TableSettings(client_column=client_column, **asked)
        return encode_table(client_tables(read_table(path), tested, client_column), question)

    return deal


def test_clients_keep_their_names_in_natural_order_and_all_their_rows(deal):
    dealt = deal(hospitals())
    assert list(dealt.clients) == ["a", "c9", "c10"]
    for train, test in dealt.clients.values():
        assert len(train[1]) == 8
        assert len(test[1]) == 2


def test_the_sentence_says_what_was_done(deal):
    assert deal(hospitals()).told.endswith(
        "patients.csv: 30 rows of 3 clients, predicting died in 2 classes, from 1 number and"
        " 2 categories, scaled inside each client, 3 missing numbers filled with means, test rows"
        " drawn in each client, left out id (it numbers the rows)"
    )


def test_types_and_shapes_are_those_that_were_promised(deal):
    dealt = deal(hospitals())
    (inputs, targets), _ = dealt.clients["a"]
    assert {name: (x.dtype, x.shape) for name, x in inputs.items()} == {
        "numbers": (np.float32, (8, 2)),  # age, and whether it was missing
        "categories": (np.int64, (8, 2)),
    }
    assert targets.dtype == np.int64
    assert dealt.schema.classes == ("no", "yes")
    assert dealt.schema.category_sizes == (4, 4)


def test_numbers_are_scaled_by_the_clients_own_training_rows(deal):
    for (train, _), _test in deal(hospitals(40)).clients.values():
        ages, missing = train["numbers"].T
        there = missing == 0
        assert ages[~there].tolist() == [0.0] * int((~there).sum())
        assert ages[there].mean() == pytest.approx(0, abs=1e-6)
        assert ages[there].std() == pytest.approx(1, abs=1e-5)


def test_another_clients_numbers_change_nothing_unless_statistics_are_shared(deal):
    lines = list(hospitals())
    changed = [line.replace(",a,", ",a,1") for line in lines]
    for share in (False, True):
        one, other = (deal(some, share_statistics=share) for some in (lines, changed))
        same = all(
            np.array_equal(one.clients[name][0][0]["numbers"], two[0][0]["numbers"])
            for name, two in other.clients.items()
            if name != "a"
        )
        assert same is not share


def test_shared_statistics_are_those_of_all_training_rows_together(deal):
    dealt = deal(hospitals(40), share_statistics=True)
    columns = [train["numbers"] for (train, _), _ in dealt.clients.values()]
    ages = np.concatenate([x[x[:, 1] == 0, 0] for x in columns])
    assert ages.mean() == pytest.approx(0, abs=1e-6)
    assert ages.std() == pytest.approx(1, abs=1e-5)


def test_missing_and_unseen_categories_have_slots_of_their_own(deal, tmp_path):
    schema = {
        "target": "died",
        "task": "classification",
        "classes": ["no", "yes"],
        "columns": [{"name": "ward", "kind": "category", "categories": ["heart"]}],
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    dealt = deal(hospitals(), schema=read_schema(tmp_path / "schema.json"))
    slots = {
        name: np.unique(np.concatenate([part[0]["categories"] for part in parts])).tolist()
        for name, parts in dealt.clients.items()
    }
    assert slots == {"a": [1], "c9": [0, 2], "c10": [0, 2]}
    assert "sex (not in the schema)" in dealt.told


def test_a_schema_that_is_written_is_read_again(deal, tmp_path):
    schema = deal(hospitals()).schema
    (tmp_path / "schema.json").write_text(json.dumps(schema.document()))
    assert read_schema(tmp_path / "schema.json") == schema
    toml = 'target = "died"\ntask = "regression"\n[[columns]]\nname = "age"\nkind = "number"\n'
    (tmp_path / "schema.toml").write_text(toml)
    assert read_schema(tmp_path / "schema.toml").numbers[0].name == "age"


def test_test_rows_are_drawn_by_the_seed_and_each_class_in_proportion(deal):
    one, same, other = (deal(hospitals(40), seed=seed) for seed in (0, 0, 1))
    for name, (_, test) in one.clients.items():
        assert np.bincount(test[1]).tolist() == [6, 2]
        assert np.array_equal(test[0]["numbers"], same.clients[name][1][0]["numbers"])
    assert any(
        not np.array_equal(test[0]["numbers"], other.clients[name][1][0]["numbers"])
        for name, (_, test) in one.clients.items()
    )


def test_leaving_a_client_out_changes_nothing_for_the_others(deal):
    lines = list(hospitals(20))
    one = deal(lines)
    two = deal([line for line in lines if ",c9," not in line])
    assert np.array_equal(one.clients["c10"][1][0]["numbers"], two.clients["c10"][1][0]["numbers"])


def test_a_split_column_or_a_second_file_says_which_rows_are_for_testing(deal):
    lines = list(hospitals())
    marks = ["split", *(["train"] * 7 + ["test"] * 3) * 3]
    dealt = deal([f"{line},{mark}" for line, mark in zip(lines, marks, strict=True)])
    assert [len(test[1]) for _, test in dealt.clients.values()] == [3, 3, 3]
    assert "split" not in [column.name for column in dealt.schema.columns]
    dealt = deal(lines, test="\n".join(lines[:6] + lines[11:16] + lines[21:26]))
    assert [(len(train[1]), len(test[1])) for train, test in dealt.clients.values()] == [
        (10, 5)
    ] * 3


@pytest.mark.parametrize(
    ("values", "task", "expected"),
    [
        (["yes", "no"], None, "classification"),
        (["0", "1", "2"], None, "classification"),
        (["0.5", "1.5", "2"], None, "regression"),
        ([str(k) for k in range(0, 90, 3)], None, "regression"),
        (["0", "1", "2"], "regression", "regression"),
        ([str(k) for k in range(0, 90, 3)], "classification", "classification"),
    ],
)
def test_the_task_follows_from_the_target_unless_it_is_given(deal, values, task, expected):
    lines = ["hospital,x,died"]
    lines += [f"h{k % 3},{k * 7 % 11},{values[k // 3 % len(values)]}" for k in range(120)]
    dealt = deal(lines, task=task)
    assert dealt.schema.task == expected
    targets = dealt.clients["h0"][0][1]
    assert targets.dtype == (np.int64 if expected == "classification" else np.float32)


def test_sizes_can_be_given(deal):
    dealt = deal(hospitals(40), train_size=10, test_size=4)
    assert [(len(train[1]), len(test[1])) for train, test in dealt.clients.values()] == [
        (10, 4)
    ] * 3


def test_parquet_and_npz_hold_the_same_table(deal, tmp_path):
    pandas = pytest.importorskip("pandas", reason="needs the extra tables")
    one = deal(hospitals())
    frame = pandas.read_csv(tmp_path / "patients.csv")
    frame.to_parquet(tmp_path / "patients.parquet")
    texts = {
        name: frame[name].fillna("").astype(str) for name in ("hospital", "sex", "ward", "died")
    }
    columns = {name: np.array(texts.get(name, frame[name])) for name in frame}
    columns = {k: x.astype(str) if x.dtype == object else x for k, x in columns.items()}
    np.savez(tmp_path / "patients.npz", **columns)
    for ending in ("parquet", "npz"):
        table = read_table(tmp_path / f"patients.{ending}")
        question = TableSettings("died", "hospital")
        two = encode_table(client_tables(table, None, "hospital"), question)
        assert set(two.schema.columns) == set(one.schema.columns)
        order = [
            [c.name for c in two.schema.categories].index(c.name) for c in one.schema.categories
        ]
        for name, parts in one.clients.items():
            for (x, y), (x2, y2) in zip(parts, two.clients[name], strict=True):
                assert np.array_equal(x["numbers"], x2["numbers"])
                assert np.array_equal(x["categories"], x2["categories"][:, order])
                assert np.array_equal(y, y2)


def test_parquet_is_read_as_it_is_meant_whatever_its_types_and_row_groups(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="needs the extra tables")
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra tables")
    path, nan = tmp_path / "t.parquet", np.nan
    days = arrow.array([0, None, 3], arrow.date32())
    found = {
        "whole": (arrow.array([1, None, 2**53]), [1, nan, 2.0**53]),
        "half": (arrow.array(np.float16([1.5, 2, 3])), [1.5, 2, 3]),
        "decimal": (arrow.array([1, None, 3]).cast(arrow.decimal128(22, 2)), [1, nan, 3]),
        "truth": (arrow.array([True, None, False]), ["true", "", "false"]),
        "day": (days, [0, nan, 3]),
        "time": (days.cast(arrow.timestamp("ns")), [0, nan, 3]),
        "text": (arrow.array(["a", None, "b"]), ["a", "", "b"]),
        "category": (arrow.array(["a", None, "b"]).dictionary_encode(), ["a", "", "b"]),
        "codes": (arrow.array([7, None, 5]).dictionary_encode(), [7, nan, 5]),
        "nothing": (arrow.nulls(3), ["", "", ""]),
    }
    table = arrow.table({name: column for name, (column, _) in found.items()})
    for how in ({}, {"row_group_size": 1}, {"use_dictionary": False}, {"compression": "gzip"}):
        parquet.write_table(table, path, **how)
        columns = read_table(path).columns
        for name, (_, cells) in found.items():
            np.testing.assert_array_equal(columns[name], np.array(cells, columns[name].dtype))


def test_a_large_parquet_file_of_few_different_texts_is_read(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="needs the extra tables")
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra tables")
    rng = np.random.default_rng(0)
    n = 300_000
    table = {"hospital": np.sort(rng.choice(["north clinic", "south clinic"], n))}
    table |= {f"x{k}": rng.integers(0, 3, n) for k in range(8)} | {"y": rng.normal(size=n)}
    parquet.write_table(arrow.table(table), tmp_path / "t.parquet", compression="zstd")
    columns = read_table(tmp_path / "t.parquet").columns
    assert len(columns["hospital"]) == n
    assert np.array_equal(columns["y"], table["y"])


def with_cell(row, column, value):
    """Return the hospitals with another cell."""
    lines = [line.split(",") for line in hospitals()]
    lines[row][lines[0].index(column)] = value
    return "\n".join(map(",".join, lines))


@pytest.mark.parametrize(
    ("lines", "asked", "message"),
    [
        (None, {"target": "dead"}, "has no target 'dead'; did you mean 'died'"),
        (None, {"client_column": "hospitl"}, "no client column 'hospitl'; did you mean 'hospital'"),
        (with_cell(2, "hospital", " "), {}, "line 3: the client's name in column"),
        (with_cell(2, "died", "NaN"), {}, "line 3: client 'c10' has no target in column 'died'"),
        (with_cell(2, "hospital", "tiny"), {}, "client 'tiny' has 1 row,"),
        (with_cell(2, "age", "inf"), {}, "line 3: client 'c10', column 'age' has inf"),
        (None, {"target": "id"}, "'id' is another one in each of the 30 rows, like an identifier"),
        (None, {"target": "ward"}, "no target in column 'ward'"),
        (None, {"task": "regression"}, "'died', and a regression needs numbers"),
        (None, {"test_size": 9}, "client 'a' has 8 rows that can be test rows, not 9"),
        (None, {"train_size": 9}, "client 'a' has 8 rows that can be training rows, not 9"),
        ("hospital,x,died\n" + "a,1,0\n" * 9, {}, "the target 'died' is '0' everywhere"),
        ("hospital,x,died\n" + "a,1,0\na,2,1\n" * 4 + "b,1,0\nb,1,1\n", {}, "'b' has 2 rows"),
        ("hospital,x,died\n" + "a,1,.5\na,2,.2\n" * 4 + "b,1,.5\n" * 9, {}, "the same number"),
        ("hospital,died\n" + "a,1\na,0\n" * 9, {}, "no column left to predict 'died' from"),
        (
            "hospital,x,died\n" + "\n".join(f"a,1,c{k % 130}" for k in range(500)),
            {},
            "has 130 classes, and 100 are the most",
        ),
    ],
)  # fmt: skip
def test_bad_tables_get_one_sentence(deal, lines, asked, message):
    with pytest.raises(InvalidInputError) as error:
        deal(lines or hospitals(), **asked)
    assert message in str(error.value)
    assert "patients.csv" in str(error.value)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "a schema is a table"),
        ({"targt": "x"}, "did you mean 'target'"),
        ({"target": "x"}, "the task of a schema"),
        ({"target": "x", "task": "classification", "classes": ["a"]}, "at least two classes"),
        ({"target": "x", "task": "regression"}, "lists the columns"),
        ({"target": "x", "task": "regression", "columns": [3]}, "a column is a table"),
        (
            {"target": "x", "task": "regression", "columns": [{"name": "x", "kind": "number"}]},
            "'x' is there twice",
        ),
        (
            {"target": "x", "task": "regression", "columns": [{"name": "y", "kind": "word"}]},
            "kind of column 'y' is number or category",
        ),
    ],
)
def test_bad_schemas_get_one_sentence(tmp_path, document, message):
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidInputError, match=message) as error:
        read_schema(path)
    assert "schema.json" in str(error.value)


CELLS = st.sampled_from(
    [
        "",
        "a",
        "b",
        "1",
        "2",
        "0.5",
        "1,5",
        "NA",
        "?",
        "1e400",
        "-inf",
        "none",
        '"',
        "é",
        "9" * 30,
        ";",
    ]
)


@given(
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=14),
    header=st.lists(st.sampled_from(["h", "x", "y", "split", ""]), min_size=1, max_size=4),
    separator=st.sampled_from(",;\t|"),
    task=st.sampled_from([None, "classification", "regression"]),
)
def test_any_small_table_is_dealt_or_refused_in_a_sentence(
    tmp_path_factory, rows, header, separator, task
):
    path = tmp_path_factory.mktemp("fuzz") / "t.csv"
    path.write_text("\n".join(separator.join(row) for row in [header, *rows]))
    try:
        dealt = encode_table(
            client_tables(read_table(path), None, "h"), TableSettings("y", "h", task=task)
        )
    except CoalitionError as error:
        assert "\n" not in str(error)  # noqa: PT017 (either outcome is right)
    else:
        assert dealt.clients
        for parts in dealt.clients.values():
            for inputs, targets in parts:
                assert all(len(array) == len(targets) for array in inputs.values())
                assert all(np.isfinite(array).all() for array in inputs.values())


def test_groups_are_kept_and_are_no_input(deal):
    lines = list(hospitals())
    regions = {"c10": "north", "c9": "south", "a": "north"}
    lines = [f"{lines[0]},region"] + [f"{each},{regions[each.split(',')[1]]}" for each in lines[1:]]
    dealt = deal(lines, group_column="region")
    assert dict(dealt.groups) == regions
    assert "region" not in [each.name for each in dealt.schema.columns]
    assert "judged by the 2 groups of region" in dealt.told
    assert "region" in [each.name for each in deal(lines).schema.columns]
    with pytest.raises(
        InvalidInputError, match="client 'a' has not one group in column 'sex', but"
    ):
        deal(lines, group_column="sex")
    with pytest.raises(InvalidInputError, match=r"client 'c9' has not one.* in some rows none"):
        deal(lines, group_column="ward")
    with pytest.raises(InvalidInputError, match="no group column 'regoin'; did you mean 'region'"):
        deal(lines, group_column="regoin")
    with pytest.raises(InvalidInputError, match="which is the target or the client's name"):
        deal(lines, group_column="hospital")


def dated(dates, n=24):
    rows = [f"{'ab'[k % 2]},{dates[k % len(dates)]},{k % 3},{k % 2}" for k in range(n)]
    return "\n".join(["hospital,admitted,score,died", *rows])


@pytest.mark.parametrize(
    "dates",
    [
        ["2024-03-01", "2024-03-02", "2024-03-05"],
        ["1.3.2024", "02.03.2024", "05.03.2024"],
        ["2024-03-01T00:00", "2024-03-02 00:00:00", "5.3.2024"],
    ],
)
def test_dates_are_days_where_they_can_be_read_in_one_way(tmp_path, dates):
    path = tmp_path / "patients.csv"
    path.write_text(dated(dates))
    table = with_days(read_table(path))
    start = 19783.0  # 2024-03-01
    assert table.columns["admitted"][:3].tolist() == [start, start + 1, start + 4]
    question = PathSettings(path, "died", "hospital")
    dealt = read_path(question)
    assert dealt.schema.columns[0].name == "admitted"
    assert dealt.schema.columns[0].kind == "number"
    assert dealt.told.endswith("read with dates as days (admitted)")
    by_day = read_path(replace(question, client_column="admitted", target="died"))
    assert set(by_day.clients) == set(dates)  # what names somebody stays a name


def test_dates_that_mean_two_things_and_categories_of_a_schema_stay_texts(tmp_path):
    path = tmp_path / "patients.csv"
    path.write_text(dated(["3/1/2024", "3/2/2024", "3/5/2024"]))
    question = PathSettings(path, "died", "hospital")
    assert read_path(question).schema.columns[0].kind == "category"
    path.write_text(dated(["2024-03-01", "2024-03-02"]))
    schema = read_path(question).schema.document()
    schema["columns"][0] = {"name": "admitted", "kind": "category", "categories": ["2024-03-02"]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    dealt = read_path(replace(question, schema=tmp_path / "schema.json"))
    codes = np.concatenate([train[0]["categories"] for train, _ in dealt.clients.values()])
    assert set(codes.ravel()) == {1, 2}  # unseen, and the one that has a name


@pytest.mark.parametrize(
    ("stray", "message"),
    [
        ("inf", "client 'b', column 'age' has inf; numbers up to 1e\\+30 can be learnt from"),
        (">90", "client 'b' has '>90' in column 'age', and 39 of the column's 40 cells are numb"),
        ("k.A.", "client 'b' has 'k.A.' in column 'age', and 39 of the column's 40 cells are n"),
    ],
)
def test_a_stray_text_does_not_cost_a_column_of_numbers(deal, stray, message):
    rows = [f"{'ab'[k % 2]},{k * 37 % 100 + k / 100},{k % 2}" for k in range(40)]
    rows[5] = f"b,{stray},1"
    with pytest.raises(InvalidInputError, match=f"line 7: {message}"):
        deal(["hospital,age,died", *rows])
    words = [f"{'ab'[k % 2]},{k if k % 3 else f'x{k}'},{k % 4 // 2},{k % 2}" for k in range(60)]
    kept = deal(["hospital,ticket,score,died", *words])
    assert kept.dropped["ticket"] == "60 different texts in 60 rows"
