from __future__ import annotations

import sys

import pytest

from coalitions import InvalidInputError, Registry, UnknownNameError


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "some_greetings"
    folder.mkdir()
    (folder / "__init__.py").write_text("from coalitions import Registry\n")
    (folder / "_shared.py").write_text("raise RuntimeError('never imported')\n")
    (folder / "hello.py").write_text(
        "from tests_registry import R\nR.register('hello')('Hello!')\n"
    )
    (tmp_path / "tests_registry.py").write_text(
        "from coalitions import Registry\nR = Registry('greeting', 'some_greetings')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith(("some_greetings", "tests_reg"))]:
        del sys.modules[name]


def test_a_new_file_is_found_by_itself_and_not_before_it_is_needed(package):
    from tests_registry import R

    assert "some_greetings" not in sys.modules
    assert R["hello"] == "Hello!"
    assert R.names() == ["hello"]
    assert "hello" in R
    assert "some_greetings._shared" not in sys.modules


def test_an_unknown_name_is_answered_with_the_known_ones():
    registry = Registry("solver")
    registry.register("highs")(1)
    registry.register("cbc")(2)
    with pytest.raises(UnknownNameError, match="no solver named 'hihgs'; did you mean 'highs'"):
        registry["hihgs"]
    with pytest.raises(UnknownNameError, match="there are: cbc, highs"):
        registry["gurobi-cloud"]


def test_a_name_is_given_once():
    registry = Registry("thing")
    registry.register("a")("one")
    with pytest.raises(InvalidInputError, match="registered already"):
        registry.register("a")("two")
