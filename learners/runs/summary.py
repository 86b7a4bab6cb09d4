"""What is said of a run's result in lines; read without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coalitions.formatting import listed, quoted
from learners.measures.scores import ACCURACY, main_metric


def summary(document: Mapping[str, Any]) -> dict[str, str]:
    """Return what is said of a result, by what it is about; of a folder's document as well."""
    traffic = document["communication"]
    return {
        "algorithm": document["algorithm"],
        "data set": f"{document['dataset']}, {document['clients']} clients",
        **_scores(document),
        **_kept(document),
        **_newcomers(document),
        **_left_out(document),
        "parameters sent": f"{traffic['up']:,} up, {traffic['down']:,} down",
        **_privacy(document),
        "time": f"{document['seconds']:.1f} s for {document['rounds']} rounds",
        "folder": str(document["out"]),
    }


def _scores(document: Mapping[str, Any]) -> dict[str, str]:
    """Return accuracies and other metrics; what the run is judged by comes first."""
    accuracies, metrics = _accuracies(document), _metrics(document)
    first = main_metric(document) == ACCURACY
    return accuracies | metrics if first else metrics | accuracies


def _accuracies(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the accuracies; nothing where there are none."""
    if document["mean_test_accuracy"] is None:
        return {}
    alone = not _metrics(document)
    return {
        "mean test accuracy": f"{document['mean_test_accuracy']:.4f}",
        "worst client" if alone else "worst accuracy": f"{document['worst_client_accuracy']:.4f}",
        "each client" if alone else "accuracy of each": _each(
            document["per_client_test_accuracy"], document
        ),
    }


def _metrics(document: Mapping[str, Any]) -> dict[str, str]:
    """Return what was asked for beside the accuracy, and for whom it is not defined."""
    words: dict[str, str] = {}
    for name, told in document.get("metrics", {}).items():
        if name == "accuracy":
            continue
        mean = "not defined" if told["mean"] is None else f"{told['mean']:.4f}"
        words[f"mean test {name}"] = mean
        words[f"{name} of each"] = _each(told["per_client"], document)
        if told["undefined"]:
            who = listed(document["client_names"][int(c)] for c in told["undefined"])
            words[f"no {name}"] = f"{who}: {next(iter(told['undefined'].values()))}"
    return words


def _kept(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the round that each client's model is from, if it is not the last one."""
    rounds = document.get("per_client_kept_round")
    return {} if rounds is None else {"best round of each": _each(rounds, document, "d")}


def _newcomers(document: Mapping[str, Any]) -> dict[str, str]:
    """Return how good the clients' models are that were held out of training."""
    told = document.get("new_clients")
    if told is None:
        return {}
    measured = {name: each["per_client"] for name, each in told.get("metrics", {}).items()}
    name, values = next(iter(measured.items()), ("accuracy", told["per_client_test_accuracy"]))
    figures = ["-" if each is None else f"{each:.3f}" for each in values]
    each = [f"{who} {figure}" for who, figure in zip(told["names"], figures, strict=True)]
    return {"new clients": f"test {name}: {', '.join(each)}", "they got": told["how"]}


def _each(values: Sequence[float | None], document: Mapping[str, Any], form: str = ".3f") -> str:
    """Return the clients' figures, with their names if they have some of their own."""
    figures = ["-" if each is None else format(each, form) for each in values]
    names = document.get("client_names") or []
    if len(names) != len(figures) or names == [f"client {i}" for i in range(len(names))]:
        return " ".join(figures)
    return ", ".join(f"{quoted(name)} {score}" for name, score in zip(names, figures, strict=True))


def _left_out(document: Mapping[str, Any]) -> dict[str, str]:
    """Return who was left out, and why: never only with --verbose."""
    from learners.server.client_failures import sentence

    told = [sentence(each, document["rounds"]) for each in document["left_out"]]
    return {"left out": ("\n" + " " * 22).join(told)} if told else {}


def _privacy(document: Mapping[str, Any]) -> dict[str, str]:
    about = document["privacy"]
    if about is None:
        return {}
    spent = "∞" if document["epsilon"] is None else f"{document['epsilon']:.4g}"
    return {
        "privacy": f"ε = {spent} at δ = {about['delta']:g}, noise {about['noise']:.4g} in"
        f" {about['mode']} clipped to {about['clip']:g}",
        "it covers": about["covers"],
    }
