"""Inference over what Curran & Stumm leave open: it recovers a known truth, learns nothing where there is nothing to learn, and moves with its data."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats


@pytest.fixture(scope="module")
def tool(root, module_of):
    """tools/inference as a module."""
    return module_of("inference")


@pytest.fixture(scope="module")
def record(tool):
    """The model, all draws on record, the density that they were proposed with, and how many are of the prior."""
    model = tool.model()
    draws, rounds = tool.kept()
    points, values = tool.table(model, draws)
    return model, points, values, tool.density(model, draws, rounds), rounds[0]


def test_a_known_truth_is_recovered_as_often_as_stated(tool, record):
    (parameters, data, _), points, values, _, first = record
    cases = 200
    of_prior = {key: column[:first] for key, column in values["F", "all"].items()}
    ranks, sizes = tool.posterior.calibrate(points[:first], data, of_prior, cases, seed=7)
    assert np.median(sizes) > 30, sizes
    inside = ((ranks > 0.05) & (ranks < 0.95)).mean(axis=0)
    print({parameter.name: float(share) for parameter, share in zip(parameters, inside)}, np.median(sizes))
    # About 90 % of the truths of each parameter, and ranks that are uniform; a posterior of 60 effective draws is a few percent too narrow.
    assert 0.86 < inside.mean() < 0.93
    for place, parameter in enumerate(parameters):
        assert inside[place] > 0.81, parameter.name
        assert stats.kstest(ranks[:, place], "uniform").pvalue > 1e-3, parameter.name
    # The canary: posteriors that know too much are found out.
    sharp = np.clip(0.5 + 1.5 * (ranks - 0.5), 0, 1)
    assert ((sharp > 0.05) & (sharp < 0.95)).mean() < 0.81


def test_the_data_say_something_and_nothing_of_what_no_simulation_uses(tool, record):
    model, points, values, density, _ = record
    weight = tool.particles(model, values, density).sum(axis=0)
    effective = tool.posterior.effective(weight)
    names = [parameter.name for parameter in model[0]]

    def distance(name):
        at = points[:, names.index(name)]
        order = np.argsort(at)
        return np.abs(np.cumsum(weight[order]) - at[order]).max()

    # Kolmogorov's bound at 0.1 %, for as many draws as the weights are worth.
    assert distance("control") < 1.95 / np.sqrt(effective), effective
    for told in ("pause", "burst-tail", "burst-scale"):
        assert distance(told) > 1.95 / np.sqrt(effective), told


def test_a_mutated_datum_moves_the_posterior(tool, record):
    model, points, values, density, _ = record
    at = points[:, [parameter.name for parameter in model[0]].index("pause")]

    def mean(data):
        return float(tool.particles(model, values, density, data).sum(axis=0) @ at)

    (benefit,) = (datum for datum in model[1] if datum.id == "largest-benefit")
    others = [datum for datum in model[1] if datum is not benefit]
    larger = tool.posterior.Datum(**{**benefit.__dict__, "low": 0.095, "high": 0.105})
    assert mean([*others, larger]) < mean(model[1]) - 0.05, "a larger benefit of migration takes shorter pauses"
    with pytest.raises(ValueError, match="no draw is compatible"):
        mean([*others, tool.posterior.Datum(**{**benefit.__dict__, "low": 3.0, "high": 4.0})])


def test_draws_on_record_repeat_and_their_page_is_theirs(root, program):
    def run(*arguments):
        environment = {**os.environ, "SCHEDLAB": str(program)}
        return subprocess.run([sys.executable, root / "tools/inference", *arguments], env=environment, capture_output=True, text=True)

    done = run("check", "--draws", "2")
    assert done.returncode == 0, done.stderr
    done = run("fit", "--check")
    assert done.returncode == 0, done.stderr
