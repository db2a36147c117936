"""Samplers by name and option, the chances of ranks, and what a run makes of them."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import make_block, make_settings, make_space, train
from wsabie.core.errors import InputError
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.linear_space import LinearSpace
from wsabie.embedding.relation_spaces import MultiRelationSpace
from wsabie.kernels.embedding.label_sketches import SketchedLabels
from wsabie.training import samplers
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.loops import StepCounters
from wsabie.training.samplers import (
    SamplerConfig,
    SketchedNegativeSampler,
    _find_extremes,
    can_use_sketches,
    compute_rank_chances,
    create_sampler,
)
from wsabie.training.trainer import EpochRunner, Trainer
from wsabie.training.training_data import TrainingData


def test_a_name_or_a_mapping_makes_a_sampler() -> None:
    assert SamplerConfig.from_value("uniform") == SamplerConfig()
    assert SamplerConfig.from_value({"name": "frequency", "power": 0.75}) == SamplerConfig("frequency", power=0.75)
    assert SamplerConfig.from_value(SamplerConfig("adaptive")) == SamplerConfig("adaptive")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("warp", "sampler is 'warp'; choose one of uniform, frequency, adaptive, full-sort"),
        (3, "choose one of"),
        ({"power": 1}, "choose one of"),
        ({"name": ["uniform"]}, "choose one of"),
        ({"name": "uniform", "power": 1}, "has no option 'power'; its options are: none"),
        ({"name": "adaptive", "power": 1}, "has no option 'power'; its options are: rank_scale, distribution, paper"),
        ({"name": "frequency", "power": "much"}, "power of the sampler is 'much'"),
        ({"name": "frequency", "power": float("nan")}, "power of the sampler is nan"),
        ({"name": "adaptive", "rank_scale": 0}, "rank_scale of the sampler is 0"),
        ({"name": "adaptive", "distribution": "normal"}, "choose exponential, geometric or linear"),
        ({"name": "adaptive", "paper": "no"}, "paper of the sampler is 'no'; choose True or False"),
    ],
)
def test_what_is_no_sampler_is_refused_in_a_sentence(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SamplerConfig.from_value(value)


def test_exponential_chances_by_hand() -> None:
    """p(r) = exp(-r / (rank_scale * n)), normalised over the ranks (convention 7)."""
    chances = compute_rank_chances(SamplerConfig("adaptive", rank_scale=0.5), 4)
    heights = [math.exp(-r / 2) for r in (1, 2, 3, 4)]
    assert chances == pytest.approx([h / sum(heights) for h in heights])


def test_the_printed_scale_leaves_the_first_ranks_alone() -> None:
    """Guo et al. 2018 print exp(-r / lambda), lambda at most 1; their code's lambda * (n - 1) can be 0."""
    chances = compute_rank_chances(SamplerConfig("adaptive", rank_scale=0.001, paper=True), 291)
    assert chances.tolist() == [1.0]
    assert compute_rank_chances(SamplerConfig("adaptive", rank_scale=1.0, paper=True), 291)[0] == pytest.approx(
        1 - math.exp(-1)
    )


def test_geometric_chances_by_hand() -> None:
    chances = compute_rank_chances(SamplerConfig("adaptive", rank_scale=0.01, distribution="geometric"), 1000)
    assert chances[:3] == pytest.approx([0.1, 0.09, 0.081], rel=1e-6)


@given(
    st.sampled_from(["exponential", "geometric", "linear"]), st.floats(1e-6, 1e3), st.integers(1, 3000), st.booleans()
)
def test_chances_fall_and_sum_to_one(distribution: Any, scale: float, n: int, paper: bool) -> None:
    chances = compute_rank_chances(
        SamplerConfig("adaptive", rank_scale=scale, distribution=distribution, paper=paper), n
    )
    assert 1 <= len(chances) <= n
    assert chances.sum() == pytest.approx(1)
    assert (np.diff(chances) <= 1e-15).all()


def test_only_reachable_ranks_are_kept() -> None:
    """So that only the ends of the rankings need sorting: 22 scales of 1,094 ranks, not 109,444."""
    chances = compute_rank_chances(SamplerConfig("adaptive", rank_scale=0.01), 109_444)
    assert 15_000 < len(chances) < 26_000


@pytest.mark.parametrize("power", [0.5, 0.75])
def test_labels_without_rows_are_drawn_by_frequency_too(power: float) -> None:
    space = make_space()
    counts = np.zeros(40, np.int64)
    counts[3] = 80
    alias = create_sampler(SamplerConfig("frequency", power=power), space, counts, 1).per_thread[0]
    own_share = alias.thresholds / 2.0**32 / 40
    probabilities = own_share + np.bincount(alias.aliases, weights=1 / 40 - own_share, minlength=40)
    assert probabilities[3] / probabilities[0] == pytest.approx(80**power)


def test_a_run_counts_the_rows_of_each_label_in_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks, counts_per_call = [make_block(50), make_block(90)], []

    def spied(sampler: Any, space: Any, counts: Any, *arguments: Any) -> Any:
        counts_per_call.append(counts)
        return create_sampler(sampler, space, counts, *arguments)

    monkeypatch.setattr(samplers, "create_sampler", spied)
    settings = make_settings(sampler=SamplerConfig("frequency"), rank_sample=10, epochs=1)
    Trainer(settings).train(make_space(), TrainingData(blocks))
    assert counts_per_call[-1].tolist() == sum(np.bincount(b.targets.labels, minlength=40) for b in blocks).tolist()
    assert counts_per_call[-1].max() > counts_per_call[-1].min() > 0


@pytest.mark.parametrize("name", ["frequency", "adaptive", "full-sort"])
@pytest.mark.parametrize("loss", ["warp", "auc"])
def test_a_run_is_the_same_for_any_number_of_threads_and_learns(name: Any, loss: Any) -> None:
    block = make_block(300)
    changes = {"sampler": SamplerConfig(name), "loss": loss, "rank_sample": 10 if loss == "warp" else 0}
    settings = make_settings(epochs=3, max_sampled=40 if loss == "warp" else 1, **changes)
    (history, single_threaded), (_, two) = (
        train(block, make_space(), make_settings(**{**vars(settings), "threads": n})) for n in (1, 2)
    )
    assert np.array_equal(single_threaded.features, two.features)
    assert np.array_equal(single_threaded.labels, two.labels)
    assert history[-1].loss < history[0].loss


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.floats(0, 1))
def test_both_ends_are_those_of_one_order_with_equal_values_by_place(seed: int, n: int, share: float) -> None:
    """Zeros of both signs are equal."""
    k, rng = max(1, round(share * n)), np.random.default_rng(seed)
    columns = (rng.integers(-2, 3, (3, n)) * rng.choice([-1, 1], (3, n))).astype(np.float32) * np.float32(0.5)
    front, back = _find_extremes(columns, k)
    for column, first, last in zip(columns, front, back, strict=True):
        order = np.lexsort((np.arange(n), -column))
        assert first.tolist() == order[:k].tolist()
        assert last.tolist() == order[::-1][:k].tolist()


def test_the_adaptive_sampler_needs_an_inner_product() -> None:
    with pytest.raises(InputError, match=r'"adaptive" orders .* scores are by euclidean; choose similarity="dot"'):
        train(make_block(50), make_space("euclidean"), make_settings(sampler=SamplerConfig("adaptive")))


@pytest.mark.parametrize(("deterministic", "threads"), [(True, 1), (True, 2), (False, 1)])
def test_a_run_with_sketches_is_the_same_to_the_bit(
    deterministic: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    block, label_tables, labels = make_block(600), [], SketchedNegativeSampler.label_arrays
    settings = make_settings(epochs=3, max_norm=0.9, deterministic=deterministic, threads=threads, max_sampled=40)
    _, plain = train(block, make_space(), settings)
    monkeypatch.setattr(samplers, "SKETCHED_FROM", 1)
    monkeypatch.setattr(
        SketchedNegativeSampler,
        "label_arrays",
        lambda *label_table: label_tables.append(labels(*label_table)) or label_tables[-1],
    )
    _, sketched = train(block, make_space(), settings)
    assert np.array_equal(plain.features, sketched.features)
    assert np.array_equal(plain.labels, sketched.labels)
    assert label_tables
    assert all(isinstance(label_table, SketchedLabels) for label_table in label_tables)


def test_labels_that_were_moved_between_passes_are_sketched_anew() -> None:
    """Joining the tables of nodes moves labels; a violator that had a low score is found."""
    block, spaces = make_block(300), []
    for sketched in (False, True):
        space, rng = make_space(), np.random.default_rng(4)
        runner = EpochRunner(make_settings(max_sampled=40), space, TrainingData([block]))
        runner._samplers[None] = create_sampler(SamplerConfig(), space, np.ones(40, np.int64), 1, sketched)
        with KernelThreads(1) as threads:
            for epoch in range(3):
                _, visits = runner.prepare_visits(block, epoch, 0, threads, StepCounters.allocate(1))
                list(visits)
                space.labels[:, :20] = rng.standard_normal((40, 20))
        spaces.append(space)
    assert np.array_equal(spaces[0].features, spaces[1].features)


def test_tables_that_something_else_may_move_have_no_sketches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor have labels without points, or points under another similarity, or a table that the cache holds."""
    rng, uniform = np.random.default_rng(0), SamplerConfig()
    space = JointSpace.random(3, 40, 20, "dot", rng)
    assert not can_use_sketches(uniform, space)
    monkeypatch.setattr(samplers, "SKETCHED_FROM", space.labels.nbytes)
    assert can_use_sketches(uniform, space)
    assert not can_use_sketches(SamplerConfig("frequency"), space)
    spaces = (
        JointSpace.random(3, 39, 20, "dot", rng),
        JointSpace.random(3, 40, 20, "cosine", rng),
        JointSpace(20, "dot", space.labels, space.labels, space.bias),
        replace(space, candidates=np.arange(400, dtype=np.int32)),
        LinearSpace.zeros(30, 400),
        MultiRelationSpace.random({"track": 400, "artist": 400}, 20, "dot", rng),
    )
    assert [can_use_sketches(uniform, candidate_space) for candidate_space in spaces] == [False] * 6
