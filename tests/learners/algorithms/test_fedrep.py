import torch

from learners.algorithms.fedrep import train_head_then_body
from tests.learners import literal

BODY, HEAD = literal.LAYOUT.parts("head")


def test_one_step_of_the_head_then_one_of_the_body():
    one = literal.client("fedrep")
    start = literal.other_model()
    one.memory["head"] = start[HEAD]
    reply = train_head_then_body.run(one, {"body": start[BODY]})
    model = start.clone()
    model[HEAD] -= literal.LR * literal.gradient(model, *literal.batch(one, "head"))[HEAD]
    slope = literal.gradient(model, *literal.batch(one))
    torch.testing.assert_close(one.memory["head"], model[HEAD])
    torch.testing.assert_close(reply["body"], model[BODY] - literal.LR * slope[BODY])


def test_all_body_and_no_head_is_federated_averaging_bit_for_bit():
    _, plain = literal.play("fedavg")
    _, shared = literal.play("fedrep", cut="none")
    assert torch.equal(shared[-1].state["body"], plain[-1].state["model"])


def test_the_body_trains_as_many_epochs_as_other_models_unless_told():
    start = literal.other_model()
    bodies = {}
    for epochs in (None, 1, 3):
        one = literal.client("fedrep", body_epochs=epochs, local_epochs=3, batch_size=6)
        bodies[epochs] = train_head_then_body.run(one, {"body": start[BODY]})["body"]
    assert torch.equal(bodies[None], bodies[3])
    assert not torch.equal(bodies[None], bodies[1])
    method = one.algorithm
    assert [method.passes(4), type(method)().passes(4), type(method)(cut="none").passes(4)] == [
        7, 8, 4,
    ]  # fmt: skip


def test_only_bodies_travel():
    federation, rounds = literal.play("fedrep")
    assert rounds[-1].metrics["up"] == rounds[-1].metrics["down"] == 3 * len(BODY)
    heads = [memory["head"] for memory in federation.memories().values()]
    assert not torch.equal(heads[0], heads[1])


def test_head_epochs_and_the_personal_head_change_what_is_used():
    start = literal.other_model()
    bodies = []
    for epochs in (0, 3):
        one = literal.client("fedrep", head_epochs=epochs)
        bodies.append(train_head_then_body.run(one, {"body": start[BODY]})["body"])
    assert float((bodies[0] - bodies[1]).norm()) > 1e-3
    used = one.algorithm.model(one, {"body": start[BODY]})
    assert torch.equal(used[BODY], start[BODY])
    assert torch.equal(used[HEAD], one.memory["head"])
    assert not torch.equal(used[HEAD], one.site.initial[HEAD])
