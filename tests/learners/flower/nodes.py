"""Nodes in this process: Flower's grid, its messages and its client apps, without its servers."""

from __future__ import annotations

from flwr.app import Context, Message, RecordDict
from flwr.app.error import Error
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from learners.flower.grid_engine import GridEngine, Identity, Patience
from learners.flower.node import answering, number_of
from learners.flower.questions import GridCarrier
from learners.server.federation import Federation
from tests.learners import tiny

QUICK = Patience(start=0.3, answer=0.4, return_=0.05, look=0.001)
FIRST_NODE = 1000


def over_the_wire(message):
    """Return a message as it arrives: through the bytes that Flower sends."""
    proto = message_to_proto(message)
    return message_from_proto(type(proto).FromString(proto.SerializeToString()))


class Nodes(Grid):
    """A grid whose nodes answer when they are looked at.

    `gone` holds nodes that are not there, `silent` those that never answer, `forgetful` those whose
    process lost Flower's state, `broken` clients' numbers by a function of their answers, `rude` by
    one of what they say when they are asked who they are. As with Flower, a reply is given once,
    and reading the replies of some nodes takes what `reading` does, by node.
    """

    def __init__(self, app, n):
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 7, 1
        self.app = app
        self.contexts = {
            FIRST_NODE + i: Context(7, FIRST_NODE + i, {"partition-id": i}, RecordDict(), {})
            for i in range(n)
        }
        self.gone, self.silent = set(), set()
        self.broken = {}
        self.rude = {}
        self.errors = {}
        self.reading = {}
        self.asked = []
        self._waiting = {}

    def set_run(self, run):
        raise NotImplementedError

    run = property(lambda self: None)

    def create_message(self, *arguments, **named):
        raise NotImplementedError

    def send_and_receive(self, messages, *, timeout=None):
        raise NotImplementedError

    def get_node_ids(self):
        return [node for node in self.contexts if node not in self.gone]

    def push_messages(self, messages):
        names = []
        for message in messages:
            name = f"m{len(self.asked)}"
            message.metadata.__dict__["_message_id"] = name
            self.asked.append(message.metadata.dst_node_id)
            self._waiting[name] = over_the_wire(message)
            names.append(name)
        return names

    def pull_messages(self, message_ids):
        replies = []
        for name in message_ids:
            message = self._waiting.get(name)
            if message is None or message.metadata.dst_node_id in self.silent:
                continue
            del self._waiting[name]
            self.reading.get(message.metadata.dst_node_id, lambda: None)()
            replies.append(over_the_wire(self._reply(message)))
        return replies

    def _reply(self, message):
        node = message.metadata.dst_node_id
        code = self.errors.get(node, []).pop(0) if self.errors.get(node) else None
        if code == 4:  # the node did its work, and the answer was lost on the way
            self.app(message, self.contexts[node])
        if code is not None:
            return Message(Error(code, "as the test wants it"), reply_to=message)
        reply = self.app(message, self.contexts[node])
        greeting = '"hello"' in reply.content["answer"]["json"]
        tampers = self.rude if greeting else self.broken
        tamper = tampers.get(self.contexts[node].node_config.get("partition-id"))
        if tamper is not None:
            reply = Message(tamper(reply.content), reply_to=message)
        return reply

    def restart(self, client):
        """Have a client's node come back as another one, without what Flower kept for it."""
        old = FIRST_NODE + client
        new = max(self.contexts) + 1
        before = self.contexts.pop(old)
        self.contexts[new] = Context(7, new, before.node_config, RecordDict(), {})
        return new


def nodes(site, folder):
    app = answering(
        lambda settings, context: site, lambda context: folder / str(number_of(context))
    )
    return Nodes(app, site.config.clients)


def federation(site, grid, patience=QUICK, identity=None, at_once=60.0):
    """Return a federation; its nodes compute while they are looked at."""
    engine = GridEngine(GridCarrier(grid, at_once), site, identity or Identity.of(None), patience)
    return Federation(
        site.config, site.algorithm, engine, site.workspace.layout, site.initial, site.privacy
    )


def pair(algorithm, folder, patience=QUICK, **settings):
    """Return the same federation twice, on the engine `local` and on nodes, and the nodes."""
    settings = {"clients": 4, "rounds": 2} | settings
    here = tiny.site(algorithm, module=tiny.two_layers(), **settings)
    grid = nodes(here, folder)
    local = tiny.federation(algorithm, module=tiny.two_layers(), **settings)
    return local, federation(here, grid, patience), grid
