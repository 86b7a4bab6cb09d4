"""Means of domains, by hand."""

from __future__ import annotations

from learners.measures.scores import domain_means


def test_means_by_hand_without_the_poisoned_and_those_without_a_figure():
    figures = [0.5, 0.75, 0.0, 1.0, None, 0.25, None]
    domains = ["plain", "noisy", "plain", "plain", "noisy", "noisy", "striped"]
    poisoned = [False, False, True, False, False, False, False]
    # plain: (0.5 + 1) / 2, without client 2; noisy: (0.75 + 0.25) / 2; striped: no figure.
    assert domain_means(figures, domains, poisoned) == {"plain": 0.75, "noisy": 0.5}


def test_a_domain_of_poisoned_clients_has_no_mean():
    assert domain_means([0.5, 0.5], ["a", "b"], [True, False]) == {"b": 0.5}
