"""The benchmark for a GPU: what it can show where there is none."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")

from benchmarks import gpu  # noqa: E402
from benchmarks.stacked import seconds_of_a_question, seconds_of_a_round  # noqa: E402


def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gpu"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as ended:
        gpu.main()
    assert ended.value.code == 2
    assert "needs a GPU" in capsys.readouterr().err


def test_what_it_times_runs_here_on_the_cpu():
    sizes = {"clients": 3, "samples": 10, "device": "cpu"}
    found = seconds_of_a_question("mlp", repeats=1, **sizes)
    assert list(found) == ["tests", "gradients", "pairs"]
    assert all(seconds > 0 for pair in found.values() for seconds in pair)
    losses = [
        seconds_of_a_round(how, "mlp", rounds=2, **sizes)[2] for how in ("sequential", "stacked")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
