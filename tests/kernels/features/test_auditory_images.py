"""The cochlea and its image: against the slow twin, by hand, in pieces, and where nothing is heard."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.cochlea import compute_cochlea_output, compute_stabilised_image

from wsabie.kernels.features.auditory_images import (
    CochleaState,
    FilterCascade,
    ImageState,
    integrate_strobes,
    run_cochlea,
)

N_LAGS = 24
DECAY, LEAST = np.float32(0.97), 5
FORGET = np.exp(-np.arange(200) / 60).astype(np.float32)


def cascade(n, smooth=0.02, floor=1e-3):
    theta = np.linspace(2.4, 0.1, n)
    radius = 1 - 0.2 * np.sin(theta)
    real, imaginary, zero = radius * np.cos(theta), radius * np.sin(theta), np.sin(theta)
    gain = (1 - 2 * real + radius**2) / (1 - 2 * real + zero * imaginary + radius**2)
    arrays = (each.astype(np.float32) for each in (real, imaginary, zero, gain))
    return FilterCascade(*arrays, np.float32(smooth), np.float32(floor))


def image_of(samples, filters, cuts=()):
    """The image, lag 0 first, hearing the samples in pieces."""
    cochlea, state = CochleaState.silent(len(filters.real)), ImageState.silent(len(filters.real), N_LAGS)
    ring = np.zeros((len(filters.real), N_LAGS + 1), np.float32)
    for piece in np.split(np.asarray(samples, np.float32), cuts):
        ring = np.hstack([ring[:, -N_LAGS - 1 :], np.zeros((len(ring), len(piece)), np.float32)])
        run_cochlea(piece, filters, cochlea, ring)
        integrate_strobes(ring, len(piece), DECAY, FORGET, LEAST, state)
    return state.image[:, ::-1]


@given(st.integers(1, 6), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_hears_what_the_slow_twin_hears(n_channels, n, seed):
    samples = np.random.default_rng(seed).standard_normal(n).astype(np.float32)
    filters = cascade(n_channels)
    out = np.full((n_channels, 3 + n), 7, np.float32)
    run_cochlea(samples, filters, CochleaState.silent(n_channels), out)
    assert (out[:, :3] == 7).all()
    np.testing.assert_allclose(out[:, 3:], compute_cochlea_output(samples, filters), rtol=1e-3, atol=1e-3)


@given(st.integers(1, 3), st.integers(2, 200), st.integers(0, 2**32 - 1))
def test_the_image_is_that_of_the_slow_twin(n_channels, n, seed):
    sound = np.random.default_rng(seed).random((n_channels, n)).astype(np.float32)
    state = ImageState.silent(n_channels, N_LAGS)
    integrate_strobes(
        np.hstack([np.zeros((n_channels, N_LAGS + 1), np.float32), sound]), n, DECAY, FORGET, LEAST, state
    )
    expected = compute_stabilised_image(sound, N_LAGS, float(DECAY), FORGET, LEAST)
    np.testing.assert_allclose(state.image[:, ::-1], expected, rtol=1e-4, atol=1e-5)


@given(st.lists(st.integers(1, 31), max_size=4, unique=True), st.integers(0, 2**32 - 1))
def test_pieces_are_heard_as_the_whole(sixteenths, seed):
    samples = np.random.default_rng(seed).standard_normal(512)
    cuts = [16 * cut for cut in sorted(sixteenths)]  # gains are set every 16 samples of a piece
    assert image_of(samples, cascade(4)).tobytes() == image_of(samples, cascade(4), cuts).tobytes()


def test_a_strobe_by_hand():
    """A lone peak of 4 after a 2 and a 1: the image is what lay before it, times 1 - what is left."""
    sound = np.array([[0, 2, 1, 4, 0, 0]], np.float32)
    state = ImageState.silent(1, 4)
    integrate_strobes(np.hstack([np.zeros((1, 5), np.float32), sound]), 6, np.float32(1), FORGET, 4, state)
    # counted from the silent sample before the sound, the 2 is the third, too soon, and the 4 is the fifth
    assert state.image[0, ::-1] == pytest.approx((1 - FORGET[5]) * np.array([4, 1, 2, 0]))
    assert state.threshold[0] == 4
    assert state.since[0] == 1


@pytest.mark.parametrize(("second", "strobe"), [(19, 9), (27, 9), (29, 29)])
def test_a_threshold_holds_until_it_has_decayed(second, strobe):
    """A peak of 1 after one of 2, whose threshold has halved after 19 samples."""
    sound = np.zeros((1, 60), np.float32)
    sound[0, [9, second]] = [2, 1]
    state = ImageState.silent(1, 4)
    ring = np.hstack([np.zeros((1, 5), np.float32), sound])
    integrate_strobes(ring, 60, np.float32(0.5 ** (1 / 19)), FORGET, 3, state)
    assert state.since[0] == 58 - strobe  # the last sample is not yet looked at


def test_silence_stays_silent():
    assert not image_of(np.zeros(300), cascade(5)).any()


def test_a_constant_passes_every_stage():
    from tests.reference.cochlea import filter_samples

    assert filter_samples(np.ones(4000), cascade(6))[:, -1] == pytest.approx(np.ones(6), abs=1e-3)


def test_half_as_loud_looks_the_same():
    samples = np.random.default_rng(0).standard_normal(2000)
    loud, soft = (image_of(samples * factor, cascade(5, floor=1e-6)) for factor in (1, 0.5))
    np.testing.assert_allclose(loud, soft, rtol=1e-2, atol=1e-2)


def test_an_echo_ends():
    """After a click and enough silence nothing is left, and nothing so small that arithmetic is slow."""
    filters, cochlea, image = cascade(5), CochleaState.silent(5), ImageState.silent(5, N_LAGS)
    samples = np.zeros(20_000, np.float32)
    samples[10] = 1
    ring = np.zeros((5, N_LAGS + 1 + len(samples)), np.float32)
    run_cochlea(samples, filters, cochlea, ring)
    integrate_strobes(ring, len(samples), DECAY, FORGET, LEAST, image)
    for state_array in (cochlea.first, cochlea.second, cochlea.level, image.threshold):
        assert not state_array.any()


def test_of_a_plateau_the_first_sample_is_the_peak():
    sound = np.array([[0, 0, 0, 2, 2, 0, 0]], np.float32)
    state = ImageState.silent(1, 4)
    integrate_strobes(np.hstack([np.zeros((1, 5), np.float32), sound]), 7, DECAY, FORGET, 3, state)
    assert state.since[0] == 5 - 3
