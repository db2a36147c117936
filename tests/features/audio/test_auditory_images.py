"""Auditory images have ridges at the period of a pitch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.cochlea import filter_samples

from wsabie.core.arrays import Float32
from wsabie.features.audio.auditory_images import (
    BOX_FEATURES,
    COLUMNS,
    ROWS,
    AuditoryImageConfig,
    compute_auditory_images,
    compute_channel_frequencies,
    design_filter_cascade,
    extract_box_features,
    list_boxes,
)

RATE = 16_000
PLAN = AuditoryImageConfig(RATE)


def make_clicks(hertz: float, seconds: float = 0.5) -> Float32:
    samples = np.zeros(round(seconds * RATE), np.float32)
    samples[np.arange(0, len(samples), RATE / hertz).astype(int)] = 0.5
    return samples


def make_harmonics(hertz: float, numbers: range, seconds: float = 0.5) -> Float32:
    t = np.arange(round(seconds * RATE)) / RATE
    return sum(0.1 * np.cos(2 * np.pi * k * hertz * t) for k in numbers).astype(np.float32)  # type: ignore[union-attr]


def compute_last_image(samples: Float32, plan: AuditoryImageConfig = PLAN) -> Float32:
    *_, last = compute_auditory_images(samples, plan)
    return np.array(last)


def find_pitch(samples: Float32, low: float = 60.0, high: float = 500.0) -> float:
    """Hertz of the lag at which all channels together are strongest."""
    profile = compute_last_image(samples).sum(0)
    lags = np.arange(int(RATE / high), int(RATE / low))
    return RATE / float(lags[np.argmax(profile[lags])])


@pytest.mark.parametrize("hertz", [80.0, 100.0, 125.0, 160.0, 200.0, 320.0])
def test_pitch_of_clicks_is_their_period(hertz: float) -> None:
    assert find_pitch(make_clicks(hertz), low=hertz / 1.5) == pytest.approx(hertz, rel=0.02)


@pytest.mark.parametrize("hertz", [100.0, 150.0, 210.0])
@pytest.mark.parametrize("numbers", [range(1, 20), range(3, 20)], ids=["all", "without the fundamental"])
def test_pitch_of_harmonics_is_their_period(hertz: float, numbers: range) -> None:
    assert find_pitch(make_harmonics(hertz, numbers), low=hertz / 1.5) == pytest.approx(hertz, rel=0.02)


@pytest.mark.parametrize("hertz", [200.0, 440.0, 1000.0, 3000.0])
def test_tone_is_loudest_in_its_channel(hertz: float) -> None:
    loudest = compute_channel_frequencies(PLAN)[
        np.argmax(compute_last_image(make_harmonics(hertz, range(1, 2))).mean(1))
    ]
    assert loudest == pytest.approx(hertz, rel=0.35)


def test_channel_responds_most_near_its_pole_frequency() -> None:
    impulse = np.zeros(2048)
    impulse[0] = 1
    response = np.abs(np.fft.rfft(filter_samples(impulse, design_filter_cascade(PLAN)), axis=1))
    peaks = np.argmax(response, axis=1) * RATE / 2048
    middle = slice(5, 45)
    assert peaks[middle] == pytest.approx(compute_channel_frequencies(PLAN)[middle], rel=0.35)
    assert (np.diff(peaks) <= 0).all()


def test_noise_has_no_pitch() -> None:
    noise = 0.1 * np.random.default_rng(0).standard_normal(2 * RATE).astype(np.float32)
    flat, peaked = (compute_last_image(sound).sum(0) for sound in (noise, make_clicks(100, 2)))
    beyond = slice(40, None)
    assert flat[beyond].max() / flat[beyond].mean() < 2
    assert peaked[beyond].max() / peaked[beyond].mean() > 4


def test_images_come_at_every_hop_and_the_last_is_padded() -> None:
    shapes = [image.shape for image in compute_auditory_images(np.ones(1 + 3 * PLAN.hop_samples, np.float32), PLAN)]
    assert shapes == [(len(compute_channel_frequencies(PLAN)), PLAN.n_lags)] * 4


@given(st.sampled_from([8_000, 11_025, 16_000, 22_050, 44_100]), st.integers(1, 3000), st.integers(0, 2**32 - 1))
def test_every_sound_has_finite_images(rate: int, n: int, seed: int) -> None:
    loud = np.random.default_rng(seed).choice(np.array([-1, 0, 1], np.float32), n)
    for image in compute_auditory_images(loud, AuditoryImageConfig(rate)):
        assert np.isfinite(image).all()
        assert (image >= 0).all()


@given(st.integers(1, 120), st.integers(0, 5))
def test_boxes_cover_the_image_within_its_bounds(n_channels: int, power: int) -> None:
    n_lags = COLUMNS << power
    cut = list_boxes(n_channels, n_lags)
    if n_channels < ROWS:
        assert cut == ()
        return
    is_covered = np.zeros((n_channels, n_lags), bool)
    for box in cut:
        assert box.top + box.height <= n_channels
        is_covered[box.top : box.top + box.height, : box.width] = True
    assert is_covered.all()


def test_box_means_equal_a_manual_computation() -> None:
    """A box of the size of its description keeps its means; one twice as wide those of pairs of lags."""
    stack = np.random.default_rng(0).random((2, ROWS, 2 * COLUMNS)).astype(np.float32)
    box_features = extract_box_features(stack)
    assert box_features.shape == (2, 2, BOX_FEATURES)
    assert box_features[0, 0, :COLUMNS] == pytest.approx(stack[0, :, :COLUMNS].mean(0))
    assert box_features[0, 0, COLUMNS:] == pytest.approx(stack[0, :, :COLUMNS].mean(1))
    assert box_features[1, 1, :COLUMNS] == pytest.approx(stack[1].mean(0).reshape(-1, 2).mean(1))
    assert box_features[1, 1, COLUMNS:] == pytest.approx(stack[1].mean(1))
