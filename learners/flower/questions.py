"""What goes beside a message to a node, and beside its reply: the question, and what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from learners.flower.memory import NOTHING, sound_names
from learners.flower.records import UnreadableError, from_records, to_records
from learners.forms import MOST_COUNTED
from learners.privacy.mechanism import RATE, RELEASES, STEPS
from learners.task import Message

if TYPE_CHECKING:
    from flwr.app import RecordDict

MESSAGE_TYPE = "query.coalitions"
"""How Flower knows our messages."""

_QUESTION, _ANSWER, _TEXT = "question", "answer", "json"

DONE, REFUSED, LOST, HELLO, ENDS = "done", "refused", "lost", "hello", "ends"
"""What came of a question; ENDS: an answer of a private run that must not be dropped."""

BOOKS = (RELEASES, STEPS, RATE)
"""What a client's account of privacy has."""

GREETING = "hello"
"""The task that only asks for a node's client."""


@dataclass(frozen=True)
class Question:
    """What a node is asked.

    Attributes
    ----------
    run, name
        Which run, and which question of it.
    task, round
        What to do, in which round.
    builds_on
        The version of the client's memory that it begins with.
    kept
        Versions that the server may go back to; None if nothing is to be forgotten yet.
    settings
        The run's configuration, as TOML.
    message
        What the task is given.
    """

    run: str
    name: str
    task: str
    round: int
    builds_on: str
    kept: tuple[str, ...] | None
    settings: str
    message: Message

    def records(self) -> RecordDict:
        """Return it as Flower carries it."""
        from flwr.app import ConfigRecord

        records = to_records(self.message)
        about = {
            "run": self.run,
            "name": self.name,
            "task": self.task,
            "round": self.round,
            "builds_on": self.builds_on,
            "kept": None if self.kept is None else list(self.kept),
            "settings": self.settings,
        }
        records[_QUESTION] = ConfigRecord({_TEXT: json.dumps(about)})
        return records

    @classmethod
    def read(cls, records: RecordDict) -> Question:
        """Return the question that records stand for."""
        about = _about(records, _QUESTION)
        try:
            kept = about["kept"]
            question = cls(
                about["run"],
                about["name"],
                str(about["task"]),
                int(about["round"]),
                about["builds_on"],
                None if kept is None else tuple(kept),
                str(about["settings"]),
                from_records(records),
            )
        except (KeyError, TypeError, ValueError):
            raise UnreadableError("the question is not one of ours") from None
        earlier = [each for each in (question.builds_on, *(question.kept or ())) if each != NOTHING]
        if not sound_names(question.run, question.name, *earlier):
            raise UnreadableError("the question is not one of ours")
        return question


@dataclass(frozen=True)
class Outcome:
    """What came of a question.

    Attributes
    ----------
    status
        `DONE`, `REFUSED`, `LOST`, `HELLO` or `ENDS`.
    reply
        The reply, if it is done.
    reason
        Why not, if it is not.
    version
        The version that the client's memory is at now.
    books
        What the memory says about privacy: counts of what left, see `learners.privacy.mechanism`.
    client
        The number of the node's client, for a greeting.
    """

    status: str
    reply: Message | None = None
    reason: str = ""
    version: str = NOTHING
    books: Message | None = None
    client: int = -1

    def records(self) -> RecordDict:
        """Return it as Flower carries it."""
        from flwr.app import ConfigRecord

        records = to_records(self.reply or {})
        about = {
            "status": self.status,
            "reason": self.reason,
            "version": self.version,
            "books": dict(self.books or {}),
            "client": self.client,
        }
        records[_ANSWER] = ConfigRecord({_TEXT: json.dumps(about)})
        return records

    @classmethod
    def read(cls, records: RecordDict, limit: int) -> Outcome:
        """Return the outcome that records of a stranger stand for; see `from_records`."""
        about = _about(records, _ANSWER)
        status, version, client = (about.get(key) for key in ("status", "version", "client"))
        sound = (
            status in (DONE, REFUSED, LOST, HELLO, ENDS)
            and (version == NOTHING or sound_names("0" * 32, version))
            and type(client) is int
            and _sound_books(about.get("books"))
        )
        if not sound:
            raise UnreadableError("the reply is not one of ours")
        reply = from_records(records, limit)
        reason = quoted(str(about.get("reason", "")))
        return cls(str(status), reply, reason, str(version), about["books"], int(about["client"]))


def quoted(text: str) -> str:
    """Return a node's own text as we repeat it: only its beginning, and that escaped."""
    return ascii(text[:200])[1:-1][:120]


def _sound_books(books: object) -> bool:
    """Tell whether an account of privacy has counts and a rate that a client can have."""
    if not isinstance(books, dict) or not books.keys() <= set(BOOKS):
        return False
    counts, rate = [books.get(name, 0) for name in (RELEASES, STEPS)], books.get(RATE, 1.0)
    return (
        all(type(count) is int and 0 <= count <= MOST_COUNTED for count in counts)
        and type(rate) in (int, float)
        and 1 / MOST_COUNTED <= rate <= 1
    )


def _about(records: RecordDict, place: str) -> dict[str, Any]:
    text = records.config_records.get(place, {}).get(_TEXT)
    if not isinstance(text, str) or len(text) > 1 << 16:
        raise UnreadableError(f"there is no {place}")
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableError(f"the {place} is not JSON") from None
    if not isinstance(about, dict):
        raise UnreadableError(f"the {place} is not a table")
    return about
