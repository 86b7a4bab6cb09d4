"""Runs that begin with the weights of a file."""

import pytest
import torch
from safetensors.torch import save_file

from coalitions.errors import InvalidInputError
from learners.models import build_model
from learners.runs.prepare import prepare
from learners.runs.result import load_model
from learners.runs.run import resume, run
from learners.settings.config import RunConfig

TINY = {"clients": 2, "rounds": 1, "train_size": 20, "workers": 1, "model": "mlp"}


def tensors(seed=5):
    return dict(build_model("mlp", shape=(1, 8, 8), n_classes=10, seed=seed).state_dict())


def begun(path):
    return prepare(RunConfig.of(TINY | {"weights": str(path)}))


def test_training_begins_with_the_weights_of_the_file(tmp_path):
    path = tmp_path / "start.safetensors"
    save_file(tensors(), path)
    prepared = begun(path)
    views = prepared.site.workspace.layout.views(prepared.site.initial)
    assert all(torch.equal(views[name], value) for name, value in tensors().items())
    assert prepared.remark == f"mlp begins with the weights of {path}."


def test_a_head_that_is_left_out_begins_fresh_and_that_is_said(tmp_path):
    path = tmp_path / "body.safetensors"
    save_file({k: v for k, v in tensors().items() if not k.startswith("head")}, path)
    prepared = begun(path)
    views = prepared.site.workspace.layout.views(prepared.site.initial)
    fresh = tensors(seed=0)
    for name, value in tensors().items():
        expected = fresh[name] if name.startswith("head") else value
        assert torch.equal(views[name], expected)
    told = []
    run(TINY | {"weights": str(path)}, tell=told.append)
    assert "its head (head.weight, head.bias) is not there, and begins fresh." in told[0]


def test_a_model_of_another_run_is_a_beginning(tmp_path):
    run(TINY, tmp_path / "run")
    path = tmp_path / "run" / "models" / "client-0000.safetensors"
    views = begun(path).site.workspace.layout.views(begun(path).site.initial)
    for name, value in load_model(tmp_path / "run").state_dict().items():
        assert torch.equal(views[name], value)


def test_a_file_that_has_changed_is_refused_by_resume(tmp_path):
    path = tmp_path / "start.safetensors"
    save_file(tensors(), path)
    settings = TINY | {"weights": str(path), "rounds": 2}
    whole = run(settings, tmp_path / "whole")
    assert "weights_sha256 = " in (tmp_path / "whole" / "config.toml").read_text()

    class Stop(Exception):  # noqa: N818
        pass

    def stop(round):
        raise Stop

    with pytest.raises(Stop):
        run(settings, tmp_path / "stopped", on_round=stop)
    save_file(tensors(seed=6), path)
    with pytest.raises(InvalidInputError, match=r"start\.safetensors: has changed since the run"):
        resume(tmp_path / "stopped")
    with pytest.raises(InvalidInputError, match="has changed"):  # nor is the run repeated with it
        run(whole.config)
    save_file(tensors(), path)
    resumed = resume(tmp_path / "stopped")
    assert resumed.per_client_test_accuracy == whole.per_client_test_accuracy
    assert resumed.metrics["mean_test_loss"] == whole.metrics["mean_test_loss"]


def test_a_checksum_without_a_file_is_refused():
    with pytest.raises(InvalidInputError, match="weights_sha256 has no effect"):
        run(TINY | {"weights_sha256": "0" * 64})


def wrong(change):
    found = tensors()
    change(found)
    return found


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.update({"hidden.bias": torch.zeros(3)}), "has a tensor 'hidden.bias', which"),
        (
            lambda t: t.update({"head.weight": torch.zeros(4, 2)}),
            r"'head.weight' is 4 × 2, and mlp wants 10 × .*; leave the head out of the file",
        ),
        (lambda t: t.pop("head.bias"), r"lacks 'head.bias' \(10\) of mlp; only the whole head may"),
        (lambda t: t["head.bias"].fill_(torch.nan), "'head.bias' has numbers that are not finite"),
    ],
)
def test_what_does_not_fit_is_named(change, sentence, tmp_path):
    path = tmp_path / "wrong.safetensors"
    save_file(wrong(change), path)
    with pytest.raises(InvalidInputError, match=sentence):
        begun(path)


def test_no_pickle_is_opened(tmp_path):
    path = tmp_path / "model.pt"
    torch.save(tensors(), path)
    with pytest.raises(InvalidInputError, match="a pickle could run any code: save them by"):
        begun(path)
    path.rename(tmp_path / "model.safetensors")
    with pytest.raises(InvalidInputError, match="is not a safetensors file"):
        begun(tmp_path / "model.safetensors")
    with pytest.raises(InvalidInputError, match=r"cannot read .*nothing\.safetensors"):
        begun(tmp_path / "nothing.safetensors")
