"""The committed search spaces: what is tried for each system, and the seed that draws it.

Trial 0 is the setting that a newcomer would start with (the defaults, or what the system's own documentation advises);
trials 1 to 19 are drawn at random. A trial depends on nothing but the system, the task and its number, so that
a search can be stopped, resumed and repeated. The dimension is 100 for every system that has one, and the number of
epochs is found by validation, not drawn (ours draws the length of its schedule, at the end of which its rate is zero).
"""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

SEED = 1
DIM = 100
Rng = np.random.Generator
Draw = Callable[[Rng], Any]
Space = dict[str, Draw]


def log_uniform(low: float, high: float) -> Draw:
    """A number whose logarithm is uniform, to three digits."""
    return lambda rng: float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.3g}")


def log_integer(low: int, high: int) -> Draw:
    """An integer whose logarithm is uniform."""
    return lambda rng: round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def uniform(low: float, high: float) -> Draw:
    """A number, to three digits."""
    return lambda rng: float(f"{rng.uniform(low, high):.3g}")


def one_of(*values: Any) -> Draw:
    """Draw one of the values, each as likely."""
    return lambda rng: values[int(rng.integers(len(values)))]


def maybe(draw: Draw) -> Draw:
    """Zero, or the draw."""
    return lambda rng: draw(rng) if rng.random() < 0.5 else 0.0


SPACES: dict[str, Space] = {
    "wsabie": {
        "init": one_of("ridge", "random"),
        "rate_factor": log_uniform(0.2, 4.0),  # times the default rate of the start
        "max_norm": one_of(1.0, 1.5, 2.0, 3.0, None),
        "margin": uniform(0.3, 1.5),
        "max_sampled": one_of("auto", 300, 100),
        "epochs": log_integer(6, 40),
    },
    "lightfm": {
        "rows": one_of("tfidf", "log"),
        "learning_schedule": one_of("adagrad", "adagrad", "adadelta"),
        "learning_rate": log_uniform(0.01, 0.2),
        "max_sampled": log_integer(20, 400),
        "user_alpha": maybe(log_uniform(1e-7, 1e-4)),
        "item_alpha": maybe(log_uniform(1e-7, 1e-4)),
    },
    "fasttext": {
        "tokens": one_of("counts", "set"),
        # Hierarchical softmax ("hs") reached half of the others' quality when tried; no trial is spent on it.
        "loss": one_of("ns", "ns", "ns", "softmax"),
        "lr": log_uniform(0.2, 5.0),
        "neg": log_integer(5, 60),
    },
    "napkinxc": {
        "rows": one_of("tfidf", "log", "counts"),
        "model": one_of("plt", "hsm"),
        "arity": one_of(2, 4, 16),
        "max_leaves": one_of(50, 100, 200, 400),
        "loss": one_of("log", "l2"),
        "liblinear_c": log_uniform(0.5, 50.0),
        "weights_threshold": one_of(0.1, 0.03, 0.0),
    },
    "pecos": {
        "rows": one_of("tfidf", "log"),
        "nr_splits": one_of(2, 8, 16, 32),
        "max_leaf_size": one_of(20, 100, 300, 1000),
        "spherical": one_of(True, False),
        "Cp": log_uniform(0.1, 10.0),
        "Cn": log_uniform(0.1, 10.0),
        "threshold": one_of(0.1, 0.03, 0.0),
        "solver_type": one_of("L2R_L2LOSS_SVC_DUAL", "L2R_L1LOSS_SVC_DUAL"),
        "negative_sampling_scheme": one_of("tfn", "tfn+man"),
        "post_processor": one_of("l3-hinge", "sigmoid", "log-sigmoid"),
    },
    "omikuji": {
        "rows": one_of("tfidf", "log"),
        "cluster_k": one_of(2, 8, 16, 100),
        "cluster_balanced": one_of(True, False),
        "min_branch_size": one_of(20, 100, 300),
        "linear_loss_type": one_of("HINGE", "LOG"),
        "linear_c": log_uniform(0.3, 10.0),
        "linear_eps": one_of(0.1, 0.01),
        "linear_weight_threshold": one_of(0.1, 0.03, 0.0),
    },
}

STARTS: dict[str, dict[str, Any]] = {
    "wsabie": {},
    "lightfm": {"rows": "tfidf", "learning_schedule": "adagrad", "learning_rate": 0.05, "max_sampled": 100},
    "fasttext": {"tokens": "counts", "loss": "ns", "lr": 2.0, "neg": 5},
    "napkinxc": {"rows": "tfidf", "model": "plt"},
    "pecos": {
        "rows": "tfidf",
        "nr_splits": 16,
        "max_leaf_size": 100,
        "spherical": True,
        "negative_sampling_scheme": "tfn",
        "post_processor": "l3-hinge",
    },
    "omikuji": {"rows": "tfidf", "cluster_k": 100, "cluster_balanced": False},  # Bonsai
}

NARROWED: dict[tuple[str, str], Space] = {
    # Softmax over 16,000 labels would not finish five epochs within the cap; it would only waste fastText's trials.
    ("fasttext", "M"): {"loss": one_of("ns")}
}

SYSTEMS = tuple(SPACES)


def setting(system: str, task: str, trial: int) -> dict[str, Any]:
    """The parameters of a trial.

    Examples
    --------
    >>> setting("fasttext", "S", 0)
    {'tokens': 'counts', 'loss': 'ns', 'lr': 2.0, 'neg': 5}
    """
    if trial == 0:
        return dict(STARTS[system])
    return draw_setting({**SPACES[system], **NARROWED.get((system, task), {})}, system, trial)


def draw_setting(space: Space, system: str, trial: int) -> dict[str, Any]:
    """Draw the parameters of a trial after the first."""
    rng = np.random.default_rng([SEED, zlib.crc32(system.encode()), trial])
    return {name: draw(rng) for name, draw in space.items()}
