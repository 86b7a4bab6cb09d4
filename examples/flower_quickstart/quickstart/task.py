"""The network and the data, as in Flower's quickstart; digits ship with scikit-learn."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    """A small network."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))


def load_data(partition_id: int, num_partitions: int, batch_size: int):
    """Return the loaders of one partition: digits of few labels each."""
    images, labels = load_digits(return_X_y=True)
    order = labels.argsort(kind="stable")  # neighbours have the same labels
    mine = order[partition_id * len(order) // num_partitions :][: len(order) // num_partitions]
    x = torch.tensor(images[mine] / 8 - 1, dtype=torch.float32)
    y = torch.tensor(labels[mine])
    shuffled = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    train, test = shuffled[len(y) // 5 :], shuffled[: len(y) // 5]
    trainloader = DataLoader(TensorDataset(x[train], y[train]), batch_size, shuffle=True)
    return trainloader, DataLoader(TensorDataset(x[test], y[test]), batch_size)


def train(net, trainloader, epochs, lr):
    """Train the network, and return its loss."""
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    total = 0.0
    for _ in range(epochs):
        for x, y in trainloader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
    return total / (epochs * len(trainloader))


def test(net, testloader):
    """Return the network's loss and accuracy."""
    with torch.no_grad():
        pairs = [(net(x), y) for x, y in testloader]
    loss = sum(nn.functional.cross_entropy(scores, y).item() for scores, y in pairs)
    correct = sum((scores.argmax(1) == y).sum().item() for scores, y in pairs)
    return loss / len(pairs), correct / len(testloader.dataset)
