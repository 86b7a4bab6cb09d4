"""A new version finds the runs that older ones made, and takes no other run for one of them."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from coalitions.errors import InvalidInputError
from learners import ALGORITHMS, option, resume, run
from learners.experiments.resumable_runs import planned_cell
from learners.reproduction.carry_out import carry_out, plan
from learners.runs.kept_runs import kept_place, settings_digest
from learners.runs.run import completed
from learners.settings.config import RunConfig, digest_of_all_settings

SETTINGS = {"clients": 2, "rounds": 2, "train_size": 20, "test_size": 10, "workers": 1}
PROX = completed({**SETTINGS, "algorithm": "fedprox", "options": {"mu": 0.5}})


@dataclass(frozen=True)
class Later(RunConfig):
    """The settings of a later version: there is one more, and it has a default."""

    novelty: int = field(default=3)


def made(place, config=PROX, rounds=2, seed=0):
    """Return the folder of a run that stopped after some rounds."""

    def stop(round):
        if round.number == rounds < config.rounds:
            raise KeyboardInterrupt

    folder = place / f"seed{seed}"
    with suppress(KeyboardInterrupt):
        run(replace(config, seed=seed), folder, on_round=stop)
    return folder


def add_option(monkeypatch):
    """Give fedprox one more option, with a default, as a later version might."""
    old = ALGORITHMS["fedprox"]

    @dataclass(frozen=True)
    class LaterProx(old):
        novelty: float = option(0.25, least=0, changes="models")

    monkeypatch.setitem(ALGORITHMS._entries, "fedprox", LaterProx)


def test_a_new_setting_with_a_default_changes_no_digest():
    for config in (RunConfig(), RunConfig(algorithm="pfedsv", lr=0.1, options={"k": 3}), PROX):
        later = Later(**{name: getattr(config, name) for name in vars(config)})
        assert settings_digest(later) == settings_digest(config)
        assert settings_digest(replace(later, novelty=4)) != settings_digest(config)


def test_a_new_option_with_a_default_changes_no_digest(monkeypatch):
    digest = settings_digest(PROX)
    add_option(monkeypatch)
    again = completed({**SETTINGS, "algorithm": "fedprox", "options": {"mu": 0.5}})
    assert again.options == {"mu": 0.5, "novelty": 0.25}
    assert settings_digest(again) == digest
    assert settings_digest(replace(again, options={"mu": 0.5, "novelty": 1.0})) != digest


def test_digests_are_of_settings_and_method_and_not_of_seed_and_workers():
    digest = settings_digest(PROX)
    assert settings_digest(replace(PROX, seed=4, workers=3, checkpoint_every=2)) == digest
    others = [
        replace(PROX, algorithm="fedavg", options={}),
        replace(PROX, options={"mu": 0.25}),
        replace(PROX, lr=0.5),
        replace(PROX, train_size=None),
        replace(PROX, evaluate_every=2),  # a figure may be a curve
    ]
    assert len({digest, *map(settings_digest, others)}) == 6


def test_the_folder_of_new_runs_is_found_again(tmp_path):
    place = kept_place(tmp_path, PROX)
    assert place == tmp_path / f"fedprox-digits-{settings_digest(PROX)}"
    made(place)
    assert kept_place(tmp_path, replace(PROX, seed=1, workers=2)) == place
    assert kept_place(tmp_path, replace(PROX, lr=0.25)) != place


def test_a_run_that_an_older_version_named_is_found(tmp_path):
    old = tmp_path / f"fedprox-digits-{digest_of_all_settings(PROX)}"
    folder = made(old)
    assert kept_place(tmp_path, PROX) == old
    assert planned_cell("prox", PROX, kept_place(tmp_path, PROX) / "seed0").stage == "finished"
    # Other settings have a folder of their own.
    assert kept_place(tmp_path, replace(PROX, lr=0.25)) != old
    assert kept_place(tmp_path, replace(PROX, evaluate_every=2)) != old
    assert folder.is_dir()


def test_a_run_from_before_a_setting_and_an_option_existed_is_found_and_goes_on(
    tmp_path, monkeypatch
):
    old = tmp_path / "fedprox-digits-0123456789"
    folder = made(old, rounds=1)
    settings = folder / "config.toml"
    settings.write_text(settings.read_text().replace('keep = "last"\n', ""))
    assert "keep" not in settings.read_text()
    add_option(monkeypatch)
    now = completed({**SETTINGS, "algorithm": "fedprox", "options": {"mu": 0.5}})
    assert kept_place(tmp_path, now) == old
    cell = planned_cell("prox", now, folder)
    assert cell.stage == "begun"
    assert len(cell.result().history) == 2
    assert resume(folder).config.options == {"mu": 0.5, "novelty": 0.25}
    # With another value it is another run.
    assert kept_place(tmp_path, replace(now, options={"mu": 0.5, "novelty": 1.0})) != old
    assert kept_place(tmp_path, replace(now, keep="best")) != old


def test_a_folder_of_the_right_name_with_other_settings_is_another_run(tmp_path):
    """As it is when a default has changed since the folder was made."""
    place = kept_place(tmp_path, PROX)
    made(place, replace(PROX, lr=0.25))
    assert kept_place(tmp_path, PROX) == place.with_name(f"{place.name}-2")
    made(place.with_name(f"{place.name}-2"))
    assert kept_place(tmp_path, PROX) == place.with_name(f"{place.name}-2")
    assert kept_place(tmp_path, replace(PROX, lr=0.25)) == place


def test_a_damaged_folder_is_named_if_it_could_be_the_one(tmp_path):
    place = kept_place(tmp_path, PROX)
    settings = made(place) / "config.toml"
    settings.write_text("rounds = ")
    with pytest.raises(InvalidInputError, match=re.escape(str(settings))):
        kept_place(tmp_path, PROX)
    assert kept_place(tmp_path, replace(PROX, lr=0.25)) != place


def test_a_reproduction_goes_on_with_runs_of_an_older_version(tmp_path):
    name = "fedacs-table1"
    first = plan(name, "smoke", tmp_path, seeds=1)
    carry_out(first)
    for cell in {cell.folder: cell for cell in first.cells}.values():
        place = cell.folder.parent
        config = cell.config
        place.rename(
            place.with_name(f"{config.algorithm}-{config.dataset}-{digest_of_all_settings(config)}")
        )
    again = plan(name, "smoke", tmp_path, seeds=1)
    assert {cell.stage for cell in again.cells} == {"finished"}


def test_a_method_of_a_plug_in_that_is_not_loaded_has_the_options_it_was_given():
    config = RunConfig(algorithm="not-here", options={"share": 0.5})
    assert settings_digest(config) != settings_digest(replace(config, options={}))
