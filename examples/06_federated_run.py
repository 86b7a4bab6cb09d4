"""Ten clients, each with two kinds of digits: is one model for all a good idea?"""

from learners import load_model, resume, run

shared = {"dataset": "digits", "clients": 10, "partition": "pathological:2", "rounds": 5}

for algorithm in ("local", "fedavg", "fedavg-ft"):
    result = run(shared | {"algorithm": algorithm})
    sent = result.communication["up"] + result.communication["down"]
    print(
        f"{algorithm:<10} mean {result.mean_test_accuracy:.3f}"
        f"   worst client {result.worst_client_accuracy:.3f}   {sent:,} parameters sent"
    )

# With a folder, everything stays: the settings, each round, each client's model. A run that was
# interrupted goes on where it was; this one is finished, so `resume` only reads it.
run(shared | {"algorithm": "fedprox", "options": {"mu": 0.1}}, out="runs/prox", force=True)
print("after resume:", f"{resume('runs/prox').mean_test_accuracy:.3f}")
network = load_model("runs/prox", client=3)
print("client 3 has a", type(network).__name__)
