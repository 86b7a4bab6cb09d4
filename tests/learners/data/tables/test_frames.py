"""One table gives one result, whichever way it comes in: by file, by folder or as data frames."""

from __future__ import annotations

import numpy as np
import pytest

from coalitions.errors import InvalidInputError
from learners import run
from learners.data import from_hf
from learners.runs.run import resume

pandas = pytest.importorskip("pandas", reason="pandas is not installed")

SETTINGS = {"rounds": 1, "local_epochs": 1, "batch_size": 8, "workers": 1, "model": "linear"}
COLUMNS = {"target": "died", "client_column": "hospital"}


def patients(rows_each=12, seed=0):
    """Return a table with a column of every type that pandas has for numbers, words and times."""
    rng = np.random.default_rng(seed)
    n = 3 * rows_each
    age = rng.normal(60, 9, n).round(2)
    age[[2, 14]] = np.nan
    days = pandas.Series(pandas.date_range("2024-01-01 06:00", periods=n, freq="31h"))
    frame = pandas.DataFrame(
        {
            "hospital": np.repeat(["Ash", "Birch", "Cedar"], rows_each),
            "age": age,
            "visits": rng.integers(0, 9, n),
            "beds": rng.integers(1, 5, n).astype(float),  # whole, but floats
            "insured": rng.random(n) < 0.5,
            "ward": pandas.Categorical(rng.choice(["burns", "heart"], n)),
            "note": [f" {rng.choice(['calm', 'loud'])} " for _ in range(n)],
            "admitted": days.sample(frac=1, random_state=seed).to_numpy(),
            "born": [f"19{60 + rng.integers(30)}-03-09" for _ in range(n)],
            "died": rng.permutation(np.arange(n) % 2),
        }
    )
    frame["lab"] = pandas.array(rng.integers(0, 50, n), dtype="Int64")
    frame["smoker"] = pandas.array(rng.random(n) < 0.5, dtype="boolean")
    frame.loc[[3, 20], ["lab", "smoker"]] = pandas.NA
    frame.loc[5, "note"] = None
    frame.loc[7, "admitted"] = pandas.NaT
    return frame


def bits(result):
    """Return everything that two equal runs have in common, to the last bit."""
    models = [result.model(i).state_dict() for i in range(len(result.client_names))]
    weights = [each.numpy().tobytes() for model in models for each in model.values()]
    return result.client_names, result.per_client_test_accuracy, weights


def trained(config=None, **given):
    return bits(run(SETTINGS | (config or {}), **given))


def by_hospital(frame):
    return {
        name: rows.drop(columns="hospital").reset_index(drop=True)
        for name, rows in frame.groupby("hospital")
    }


class OtherFrame:
    """A data frame of a library that we do not know: columns and cells, and nothing else."""

    def __init__(self, frame):
        self.columns = list(frame.columns)
        self._frame = frame

    def __getitem__(self, name):
        return self._frame[name]


def test_one_table_gives_the_same_bits_by_every_way_in(tmp_path):
    frame = patients()
    path = tmp_path / "patients.csv"
    frame.to_csv(path, index=False)
    expected = trained(COLUMNS | {"dataset": str(path)})

    by_path = {".tsv": {"sep": "\t"}, ".parquet": {}, ".xlsx": {}}
    for ending, how in by_path.items():
        if ending != ".tsv":
            pytest.importorskip({".parquet": "pyarrow", ".xlsx": "openpyxl"}[ending])
        path = tmp_path / f"patients{ending}"
        write = {".tsv": "to_csv", ".parquet": "to_parquet", ".xlsx": "to_excel"}[ending]
        getattr(frame, write)(path, index=False, **how)
        assert trained(COLUMNS | {"dataset": str(path)}) == expected, ending
    for name, rows in by_hospital(frame).items():
        (tmp_path / "folder" / name).mkdir(parents=True)
        rows.to_csv(tmp_path / "folder" / name / "train.csv", index=False)
    folder = {"dataset": str(tmp_path / "folder"), "target": "died"}
    assert trained(folder) == expected

    assert trained(data=frame, **COLUMNS) == expected
    assert trained(COLUMNS, data=frame) == expected
    assert trained({"target": "died"}, data=frame, client_column="hospital") == expected
    assert trained(data=by_hospital(frame), target="died") == expected
    assert trained({"target": "died"}, data=by_hospital(frame)) == expected
    assert trained(data=OtherFrame(frame), **COLUMNS) == expected


def test_arrow_tables_and_data_sets_of_hugging_face_give_these_bits_too():
    frame = patients()
    expected = trained(data=frame, **COLUMNS)
    arrow = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    assert trained(data=arrow, **COLUMNS) == expected
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    clinics = from_hf(datasets.Dataset.from_pandas(frame), **COLUMNS)
    assert trained(data=clinics) == expected


def test_a_split_of_the_users_gives_the_same_bits_by_every_way_in(tmp_path):
    frame = patients()
    frame["split"] = np.where(np.arange(len(frame)) % 4 == 1, "test", "train")
    frame.to_csv(tmp_path / "patients.csv", index=False)
    expected = trained(COLUMNS | {"dataset": str(tmp_path / "patients.csv")})
    assert trained(data=frame, **COLUMNS) == expected

    train, test = (
        frame[frame.split == part].drop(columns="split").reset_index(drop=True)
        for part in ("train", "test")
    )
    (tmp_path / "two").mkdir()
    train.to_csv(tmp_path / "two" / "train.csv", index=False)
    test.to_csv(tmp_path / "two" / "test.csv", index=False)
    assert trained(COLUMNS | {"dataset": str(tmp_path / "two")}) == expected
    assert trained(data=(train, test), **COLUMNS) == expected

    learnt, tested = by_hospital(train), by_hospital(test)
    for name in learnt:
        (tmp_path / "clinics" / name).mkdir(parents=True)
        learnt[name].to_csv(tmp_path / "clinics" / name / "train.csv", index=False)
        tested[name].to_csv(tmp_path / "clinics" / name / "test.csv", index=False)
    assert trained({"dataset": str(tmp_path / "clinics"), "target": "died"}) == expected
    pairs = {name: (learnt[name], tested[name]) for name in learnt}
    assert trained(data=pairs, target="died") == expected
    beside = {
        name: tuple((each.drop(columns="died"), each["died"]) for each in both)
        for name, both in pairs.items()
    }
    assert trained(data=beside) == expected
    numbered = {f"client {i}": pair for i, pair in enumerate(pairs.values())}
    listed = trained(data=list(pairs.values()), target="died")
    assert listed == trained(data=numbered, target="died")


def test_a_column_split_of_each_clients_table_counts_as_in_one_table(tmp_path):
    frame = patients()
    frame["split"] = np.where(np.arange(len(frame)) % 4 == 1, "test", "train")
    expected = trained(data=frame, **COLUMNS)
    clinics = by_hospital(frame)
    assert trained(data=clinics, target="died") == expected
    for name, rows in clinics.items():
        (tmp_path / name).mkdir()
        rows.to_csv(tmp_path / name / "train.csv", index=False)
    folder = {"dataset": str(tmp_path), "target": "died"}
    assert trained(folder) == expected
    without = clinics["Birch"].drop(columns="split")
    sentence = "client 'Birch' has no test data, and client 'Ash' has some"
    with pytest.raises(InvalidInputError, match=sentence):
        trained(data=clinics | {"Birch": without}, target="died")
    without.to_csv(tmp_path / "Birch" / "train.csv", index=False)
    with pytest.raises(InvalidInputError, match=sentence):
        trained(folder)


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "America/St_Johns"])
def test_times_to_the_microsecond_and_of_any_zone_give_the_same_bits(zone, tmp_path):
    frame = patients()
    odd = frame.admitted + pandas.to_timedelta(np.arange(len(frame)) * 1234567, unit="us")
    frame["admitted"] = odd if zone is None else odd.dt.tz_localize(zone)
    frame.to_csv(tmp_path / "patients.csv", index=False)
    expected = trained(COLUMNS | {"dataset": str(tmp_path / "patients.csv")})
    assert trained(data=frame, **COLUMNS) == expected


def test_settings_of_tables_are_those_of_files(tmp_path):
    frame = patients(20)
    frame["region"] = np.where(frame.hospital == "Ash", "north", "south")
    frame.to_csv(tmp_path / "patients.csv", index=False)
    for more in (
        {"share_statistics": True},
        {"train_size": 10, "test_size": 5, "seed": 3},
        {"group_column": "region", "algorithm": "domain"},
        {"task": "regression", "target": "age", "drop": "died"},
    ):
        table = frame.dropna(subset=["age"]) if "drop" in more else frame
        asked = COLUMNS | {key: value for key, value in more.items() if key != "drop"}
        table.to_csv(tmp_path / "patients.csv", index=False)
        expected = trained(asked | {"dataset": str(tmp_path / "patients.csv")})
        assert trained(asked, data=table) == expected, more


def test_a_run_keeps_the_columns_that_were_named_in_the_call(tmp_path):
    class Stop(Exception):  # noqa: N818
        pass

    def stop(round):
        raise Stop

    frame = patients()
    whole = bits(run(SETTINGS | {"rounds": 2}, data=frame, **COLUMNS))
    with pytest.raises(Stop):
        run(SETTINGS | {"rounds": 2}, tmp_path / "run", data=frame, on_round=stop, **COLUMNS)
    assert bits(resume(tmp_path / "run", data=frame)) == whole


def test_what_was_done_with_frames_is_told():
    told = []
    run(SETTINGS, data=patients(), tell=told.append, **COLUMNS)
    assert told[0].startswith("your table: 36 rows of 3 clients, predicting died in 2 classes")


def test_what_is_wrong_with_frames_is_said_in_a_sentence():
    frame = patients()
    apart = by_hospital(frame)
    whole, other = apart["Ash"], apart["Birch"]
    arrays = (np.ones((9, 2)), np.arange(9) % 2)

    def refused(message, data, **given):
        with pytest.raises(InvalidInputError, match=message):
            run(SETTINGS, data=data, **given)

    refused("name the column with the client's name, as client_column=", frame, target="died")
    refused("name the column to predict, as target=; there are: hosp", frame, client_column="x")
    refused("a pair of tables has training and test rows", (frame, frame), target="died")
    refused("name the column to predict, as target=; there are: age", apart)
    refused("has no target 'dead'; did you mean 'died'", apart, target="dead")
    refused("client_column .* is for one table", apart, **COLUMNS)
    refused("'Birch' has no test data, and client 'Ash'", {"Ash": (whole, whole), "Birch": other},
            target="died")  # fmt: skip
    refused("test data of b: are no table", {"a": (whole, whole), "b": (other, arrays)},
            target="died")  # fmt: skip
    refused("'insured' .*a table has numbers, texts, truth values and times|holds",
            {"a": whole.assign(insured=[{1}] * 12)}, target="died")  # fmt: skip
    twice = pandas.concat([whole, whole[["age"]]], axis=1)
    refused("two columns have the name 'age'", {"a": twice}, target="died")
    refused("target has no effect .* arrays", [(arrays, arrays)], target="died")
    with pytest.raises(InvalidInputError, match="'age' in the call and 'died' in the config"):
        run(SETTINGS | COLUMNS, data=frame, target="age")
    empty = frame.assign(hospital=frame.hospital.where(frame.index != 4))
    refused("your table, row 4: the client's name in column 'hospital' is empty", empty, **COLUMNS)
