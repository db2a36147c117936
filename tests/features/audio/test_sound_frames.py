"""Cepstral coefficients equal librosa's, and auditory images have ridges at the period of a pitch."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.cochlea import filter_samples

from wsabie.core.arrays import Float32
from wsabie.features.audio.sound_frames import (
    BOX_FEATURES,
    COLUMNS,
    DELTA_REACH,
    ROWS,
    AuditoryImageConfig,
    MfccConfig,
    append_derivatives,
    build_mel_filters,
    compute_auditory_images,
    compute_channel_frequencies,
    compute_mfcc,
    design_filter_cascade,
    extract_box_features,
    list_boxes,
)

RECORDED = Path(__file__).with_name("librosa_mfcc.npz")  # by record_librosa.py


def make_noise(n: int, seed: int = 0) -> Float32:
    return (0.1 * np.random.default_rng(seed).standard_normal(n)).astype(np.float32)


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100])
def test_coefficients_of_noise_equal_those_of_librosa(rate: int) -> None:
    assert_equals_librosa(f"noise {rate}", make_noise(rate), rate)


@pytest.mark.parametrize("name", ["0_george_0", "7_theo_13", "9_nicolas_49"])
def test_coefficients_of_speech_equal_those_of_librosa(name: str, data_dir: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    samples, rate = soundfile.read(data_dir / "fsdd" / "recordings" / f"{name}.wav", dtype="float32")
    assert_equals_librosa(name, samples, rate)


def assert_equals_librosa(name: str, samples: Float32, rate: int) -> None:
    with np.load(RECORDED) as recorded:
        np.testing.assert_allclose(
            append_derivatives(compute_mfcc(samples, MfccConfig(rate))), recorded[name], atol=2e-3
        )


def test_silence_is_minus_100_decibels_in_the_first_coefficient() -> None:
    mfcc = compute_mfcc(np.zeros(1600, np.float32), MfccConfig(16_000))
    assert mfcc[:, 0] == pytest.approx(-100 * np.sqrt(40))
    assert np.abs(mfcc[:, 1:]).max() < 1e-3


def test_tenfold_amplitude_adds_20_decibels_to_the_first_coefficient() -> None:
    soft, loud = (compute_mfcc(make_noise(4000) * factor, MfccConfig(8_000)) for factor in (1, 10))
    assert (loud - soft)[:, 0] == pytest.approx(20 * np.sqrt(40), abs=1e-2)
    assert np.abs((loud - soft)[:, 1:]).max() < 1e-2


def test_filters_are_triangles_of_equal_area() -> None:
    """Triangles lie on n_bands + 2 edges, even in mel; an area of 1 Hz sums to 1 / (Hz per bin)."""
    plan = MfccConfig(16_000, window=0.25)
    filters = build_mel_filters(plan)
    assert filters.shape == (2049, 40)
    assert filters.sum(0) * plan.rate / plan.n_fft == pytest.approx(np.ones(40), rel=0.02)
    assert np.argmax(filters, 0) == pytest.approx(np.sort(np.argmax(filters, 0)))


@given(st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_every_sound_has_its_frames(n: int, seed: int) -> None:
    features = append_derivatives(compute_mfcc(make_noise(n * 37, seed), MfccConfig(8_000)))
    assert features.shape == (1 + n * 37 // 80, 39)
    assert np.isfinite(features).all()


@pytest.mark.parametrize("n", [1, DELTA_REACH, 2 * DELTA_REACH])
def test_short_sound_is_padded_with_its_end(n: int) -> None:
    base = np.random.default_rng(0).standard_normal((n, 2)).astype(np.float32)
    longer = np.vstack([base, np.repeat(base[-1:], 9 - n, axis=0)])
    assert np.array_equal(append_derivatives(base), append_derivatives(longer)[:n])


def test_derivatives_of_a_parabola_are_exact() -> None:
    t = np.arange(30, dtype=np.float32)[:, None]
    features = append_derivatives(0.5 * t * t - 3 * t)
    assert features[4:-4, 1] == pytest.approx(t[4:-4, 0] - 3, abs=1e-3)
    assert features[:, 2] == pytest.approx(np.ones(30), abs=1e-3)


def test_frame_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from wsabie.features.audio import sound_frames as module

    plan, samples = MfccConfig(8_000), make_noise(8_000)
    mfcc = compute_mfcc(samples, plan)
    monkeypatch.setattr(module, "_FRAMES_AT_ONCE", 7)
    np.testing.assert_allclose(compute_mfcc(samples, plan), mfcc, atol=1e-4)


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
