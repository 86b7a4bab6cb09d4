"""A client, as in Flower's quickstart."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from quickstart.task import Net, load_data
from quickstart.task import test as test_fn
from quickstart.task import train as train_fn

app = ClientApp()


def _start(message: Message, context: Context):
    net = Net()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    numbers = [context.node_config[key] for key in ("partition-id", "num-partitions")]
    return net, *load_data(*numbers, context.run_config["batch-size"])


@app.train()
def train(message: Message, context: Context):
    net, trainloader, _ = _start(message, context)
    config = context.run_config
    loss = train_fn(net, trainloader, config["local-epochs"], config["learning-rate"])
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(trainloader.dataset)})
    content = {"arrays": ArrayRecord(net.state_dict()), "metrics": metrics}
    return Message(content=RecordDict(content), reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context):
    net, _, testloader = _start(message, context)
    torch.set_grad_enabled(False)
    loss, accuracy = test_fn(net, testloader)
    n = len(testloader.dataset)
    metrics = MetricRecord({"eval_loss": loss, "eval_acc": accuracy, "num-examples": n})
    return Message(content=RecordDict({"metrics": metrics}), reply_to=message)
