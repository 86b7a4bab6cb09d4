"""What a client keeps of its best round: all that its model of that round takes to predict.

A model is not always one row of numbers: a method may need what the server sent, what the client
remembers, and the round's random numbers to make it. So all three are kept, and whoever asks for
the kept model asks the client as it was.
"""

from __future__ import annotations

from dataclasses import replace

from learners.client.client import Client
from learners.task import Message

_ROUND, _LOSS = "kept/round", "kept/loss"
_MESSAGE, _MEMORY = "kept/message/", "kept/memory/"


def kept_round(client: Client) -> int:
    """Return the round that a client keeps; 0 if it keeps none yet."""
    number: int = client.memory.get(_ROUND, 0)
    return number


def is_better(client: Client, loss: float) -> bool:
    """Tell whether a loss is below that of the round the client keeps; one that is no number isn't.

    Of equal rounds the first is kept.
    """
    return bool(loss < client.memory.get(_LOSS, float("inf")))


def keep_now(client: Client, message: Message, loss: float) -> None:
    """Have the client keep this round instead of the one before.

    Parameters
    ----------
    client
        The client.
    message
        What it needs, beside its memory, to use its model.
    loss
        How good that is.
    """
    own = _without_kept(client.memory)
    for name in [name for name in client.memory if name.startswith("kept/")]:
        del client.memory[name]
    client.memory |= {_ROUND: client.round, _LOSS: loss}
    client.memory |= {f"{_MEMORY}{name}": value for name, value in own.items()}
    client.memory |= {f"{_MESSAGE}{name}": value for name, value in message.items()}


def as_kept(client: Client, message: Message) -> tuple[Client, Message]:
    """Return the client as it was in the round it keeps, and its message of that round.

    Entries of `message` that say how to ask, not what to use, stay as they are.
    """
    if not kept_round(client):
        return client, message
    memory = _under(_MEMORY, client.memory)
    asked = {name: message[name] for name in ("metrics", "on") if name in message}
    then = replace(client, round=kept_round(client), memory=memory)
    return then, {**_under(_MESSAGE, client.memory), **asked}


def _under(prefix: str, memory: Message) -> dict[str, object]:
    return {n.removeprefix(prefix): value for n, value in memory.items() if n.startswith(prefix)}


def _without_kept(memory: Message) -> dict[str, object]:
    return {name: value for name, value in memory.items() if not name.startswith("kept/")}
