"""The papers' systems have the settings that the papers give."""

import pytest

from wsabie.models.paper_presets import make_opt_auc, make_vse_ens
from wsabie.training.samplers import SamplerConfig, compute_rank_chances

AS_IN_V = {
    "dim": 100,
    "loss": "auc",
    "learning_rate": 0.01,
    "schedule": "constant",
    "l2": 0.01,
    "init_scale": 0.1,
    "max_norm": None,
    "pair_weighting": "pairs",
    "similarity": "dot",
}


def test_vse_ens_preset_follows_the_paper() -> None:
    """Coordinates begin with variance .01; a picture's pairs weigh 1 each; nothing holds the norms but L2."""
    params = make_vse_ens(0.3).get_params()
    assert params.items() >= AS_IN_V.items()
    assert params["surrogate"] == "hinge"
    assert SamplerConfig.from_value(params["sampler"]) == SamplerConfig("adaptive", rank_scale=0.3)


def test_opt_auc_preset_differs_by_sampling_and_surrogate() -> None:
    params = make_opt_auc().get_params()
    assert params.items() >= AS_IN_V.items()
    assert (params["sampler"], params["surrogate"]) == ("uniform", "logistic")


def test_printed_rank_scale_is_independent_of_labels() -> None:
    """Convention 7: p(r) ~ exp(-r / lambda) as printed, exp(-r / (lambda * n)) otherwise."""
    printed, scaled = (
        compute_rank_chances(SamplerConfig.from_value(make_vse_ens(0.5, paper=paper).sampler), 1000)[:2]
        for paper in (True, False)
    )
    assert printed[1] / printed[0] == pytest.approx(0.1353, abs=1e-4)  # exp(-1 / .5)
    assert scaled[1] / scaled[0] == pytest.approx(0.9980, abs=1e-4)  # exp(-1 / 500)


def test_explicit_changes_override_presets() -> None:
    assert (
        make_vse_ens(dim=7, init_scale=0.2, sampler="uniform").get_params().items()
        >= {"dim": 7, "init_scale": 0.2, "sampler": "uniform"}.items()
    )
