"""Cepstral coefficients equal librosa's."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.arrays import Float32
from wsabie.features.audio.mfcc import DELTA_REACH, MfccConfig, append_derivatives, build_mel_filters, compute_mfcc

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
    from wsabie.features.audio import mfcc as module

    plan, samples = MfccConfig(8_000), make_noise(8_000)
    mfcc = compute_mfcc(samples, plan)
    monkeypatch.setattr(module, "_FRAMES_AT_ONCE", 7)
    np.testing.assert_allclose(compute_mfcc(samples, plan), mfcc, atol=1e-4)
