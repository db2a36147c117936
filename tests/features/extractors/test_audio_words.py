"""Sounds as rows: real speech in several formats, rates and channels, pieces, and what cannot be read."""

import io
import wave
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsabie.core.errors import InputError, ModelFolderError, UnreadableItemError
from wsabie.core.execution import ProcessExecutor
from wsabie.features.audio import audio_decoder
from wsabie.features.audio.audio_decoder import EncodedAudio
from wsabie.features.base.codebook import Codebook
from wsabie.features.extractor_registry import create_extractor, load_extractor
from wsabie.features.extractors import audio_words
from wsabie.features.extractors.audio_words import AudioCodebooks, MfccWords, SaiWords
from wsabie.io.records import Item, ItemList
from wsabie.storage.rejects import Rejects

soundfile = pytest.importorskip("soundfile", reason="soundfile decodes")
KINDS = (MfccWords, SaiWords)


def read_digits(data_dir: Path, takes: range = range(4), digits: range = range(3)) -> ItemList:
    """Spoken digits of two speakers, with the digit and the speaker as labels."""
    folder = data_dir / "fsdd" / "recordings"
    names = [(d, speaker, n) for d in digits for speaker in ("george", "theo") for n in takes]
    return ItemList(
        folder, [Item(f"{d}_{w}_{n}", folder / f"{d}_{w}_{n}.wav", (str(d), w)) for d, w, n in names], "sounds"
    )


def as_wav(samples: Any, rate: int = 8_000) -> bytes:
    """16 bits, one channel, by Python's own writer."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return file.getvalue()


def encode_sound(samples: Any, rate: int, kind: str) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind)
    return file.getvalue()


def make_hum(seconds: float, rate: int = 8_000, seed: int = 0) -> Any:
    rng, t = np.random.default_rng(seed), np.arange(round(seconds * rate)) / rate
    return 0.2 * np.sin(2 * np.pi * rng.uniform(100, 1000) * t) + 0.02 * rng.standard_normal(len(t))


def make_hums(n: int = 6) -> ItemList:
    return ItemList(Path("here"), [Item(f"hum {i}", as_wav(make_hum(1, seed=i)), ("hum",)) for i in range(n)], "sounds")


@pytest.mark.parametrize("kind", KINDS)
def test_row_counts_every_part(kind: Any) -> None:
    source = make_hums()
    rows = kind(50).fit(source).transform(source)
    parts = {MfccWords: 101, SaiWords: 50 * 28}[kind]  # frames; images times boxes
    assert np.asarray(rows.X.sum(axis=1)).ravel().tolist() == [parts] * 6
    assert rows.counts


@pytest.mark.parametrize("kind", KINDS)
def test_loaded_extractor_gives_the_same_rows(kind: Any, tmp_path: Path) -> None:
    source = make_hums()
    words = kind(60, weighting="tfidf").fit(source)
    words.save(tmp_path / "words")
    again = load_extractor(tmp_path / "words")
    assert type(again) is kind
    assert again.fingerprint() == words.fingerprint()
    assert (again.transform(source).X != words.transform(source).X).nnz == 0
    lengths = np.sqrt(words.transform(source).X.power(2).sum(axis=1))
    assert np.asarray(lengths) == pytest.approx(1)


def test_worker_processes_give_the_same_rows() -> None:
    source = make_hums(16)
    sequential = create_extractor("mfcc,sai").fit(source)
    two = ProcessExecutor(2, local_seconds=0)
    many = create_extractor("mfcc,sai").fit(source, executor=two)
    rows = many.transform(source, executor=two)
    assert many.fingerprint() == sequential.fingerprint()
    assert (rows.X != sequential.transform(source).X).nnz == 0


@pytest.mark.parametrize("ending", ["FLAC", "OGG", "MP3", "AIFF"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_formats_give_similar_rows(ending: str, in_memory: bool, tmp_path: Path) -> None:
    samples, file = make_hum(2, 16_000), tmp_path / "a\udcff.sound"  # a name that is not text
    content = encode_sound(samples, 16_000, ending)
    file.write_bytes(content)
    (decoded,) = EncodedAudio(content if in_memory else file, 60).iterate_pieces(16_000)
    n = len(samples)
    if ending in ("FLAC", "AIFF"):
        assert decoded == pytest.approx(samples, abs=1e-4)
    else:
        assert np.corrcoef(decoded[:n], samples)[0, 1] > 0.98


def test_channels_are_averaged_and_rates_converted() -> None:
    mono, file = make_hum(1, 44_100), io.BytesIO()
    soundfile.write(file, np.stack([mono, np.zeros_like(mono)], axis=1), 44_100, format="WAV", subtype="FLOAT")
    (decoded,) = EncodedAudio(file.getvalue(), 60).iterate_pieces(22_050)
    assert len(decoded) == pytest.approx(22_050, abs=2)
    t = np.arange(1000, 20_000) / 22_050
    frequency = np.random.default_rng(0).uniform(100, 1000)
    expected = 0.1 * np.sin(2 * np.pi * frequency * t)
    assert np.corrcoef(decoded[1000:20_000], expected)[0, 1] > 0.98
    assert decoded[1000:20_000].std() == pytest.approx(expected.std(), rel=0.1)


@pytest.mark.parametrize("rate", [8_000, 11_025])
def test_pieces_add_up_to_the_whole(rate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    content = as_wav(make_hum(3))
    (signal,) = EncodedAudio(content, 60).iterate_pieces(rate)
    monkeypatch.setattr(audio_decoder, "PIECE_SECONDS", 0.7)
    monkeypatch.setattr(audio_decoder, "_BLOCK", 1000)
    pieces = list(EncodedAudio(content, 60).iterate_pieces(rate))
    assert [len(piece) for piece in pieces[:-1]] == [round(0.7 * rate)] * 4
    assert np.concatenate(pieces) == pytest.approx(signal, abs=1e-5)


@pytest.mark.parametrize("rate", [8_000, 11_025])
def test_sound_beyond_the_limit_is_ignored(rate: int) -> None:
    content = as_wav(make_hum(3))
    (first,) = EncodedAudio(content, 1.5).iterate_pieces(rate)
    (signal,) = EncodedAudio(content, 60).iterate_pieces(rate)
    assert len(first) == round(1.5 * rate)
    assert first[:-100] == pytest.approx(signal[: len(first) - 100], abs=1e-4)


def test_short_remainder_is_no_piece() -> None:
    assert [len(piece) for piece in EncodedAudio(as_wav(make_hum(30.005)), 60).iterate_pieces(8_000)] == [240_000]


def test_words_are_assigned_after_shift_and_scale() -> None:
    """Two columns have a dictionary each: (x - 1) * 2 is 0, 4 and 0, 8."""
    codebooks = (Codebook(np.float32([[0], [4]])), Codebook(np.float32([[0], [5], [9]])))
    words = AudioCodebooks(np.float32([1, 1]), np.float32([2, 2]), codebooks)
    assert words.count_words(np.float32([[1, 1], [3, 5]])).tolist() == [1, 1, 1, 0, 1]


def test_boxes_share_the_codebook() -> None:
    assert SaiWords(56).fit(make_hums()).n_features_ == 56  # 28 boxes at 8,000 samples a second
    assert SaiWords(2).fit(make_hums()).n_features_ == 28


def test_codebook_is_learned_from_the_first_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ItemList(
        Path("here"), [Item("two", as_wav(np.concatenate([make_hum(1), make_hum(1, seed=9)])), ())], "sounds"
    )
    first = ItemList(Path("here"), [Item("one", as_wav(make_hum(1)), ())], "sounds")
    monkeypatch.setattr(audio_words, "_LEARNED_SECONDS", 1.0)
    first_centres, two = (MfccWords(9).fit(each).words_.codebooks[0].centres for each in (first, source))
    assert np.array_equal(first_centres, two)


def test_rate_is_the_median_of_the_source() -> None:
    source = make_hums(3)
    high_item = Item("high", as_wav(make_hum(1, 44_100), 44_100), ())
    assert MfccWords(20).fit(source).rate_ == 8_000
    assert MfccWords(20).fit(ItemList(Path("here"), [high_item], "sounds")).rate_ == 22_050
    assert MfccWords(20, rate=16_000).fit(source).rate_ == 16_000


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b"no sound at all", "not a sound"),
        (as_wav(make_hum(1))[:40], "not a sound"),
        (as_wav(make_hum(1))[: 44 + 2 * 1_480], "damaged sound"),
        (as_wav(make_hum(0.01)), "too short"),
        (as_wav(make_hum(1), rate=500), "sampling rate out of range"),
        (as_wav(make_hum(1), rate=2_000_000), "sampling rate out of range"),
        (Path("nowhere.wav"), "unreadable file"),
        (Path(), "unreadable file"),
    ],
)
def test_unreadable_sounds_are_listed(content: bytes | Path, reason: str) -> None:
    source = make_hums(5)
    words = MfccWords(20).fit(source)
    rejects = Rejects()
    rows = words.transform(ItemList(Path("here"), [*source.items, Item("bad", content, ())], "sounds"), rejects=rejects)
    assert len(rows) == 5
    assert [(where, why) for where, why, _ in rejects.listed] == [("bad", reason)]


@pytest.mark.parametrize("rate", [250_000, 384_000, 500_000])
def test_very_high_rates_are_reduced(rate: int) -> None:
    sound = EncodedAudio(as_wav(make_hum(0.5, rate), rate), 60)
    assert sound.read_rate() == rate
    assert sum(map(len, sound.iterate_pieces(22_050))) == pytest.approx(11_025, abs=5)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e20])
def test_nonfinite_samples_are_refused(value: float) -> None:
    samples, file = make_hum(1), io.BytesIO()
    samples[4000] = value
    soundfile.write(file, samples, 8_000, format="WAV", subtype="FLOAT")
    with pytest.raises(UnreadableItemError, match="no finite samples"):
        list(EncodedAudio(file.getvalue(), 60).iterate_pieces(8_000))


def test_many_channels_are_refused() -> None:
    file = io.BytesIO()
    soundfile.write(file, np.zeros((800, 33)), 8_000, format="WAV")
    with pytest.raises(UnreadableItemError, match="too many channels"):
        list(EncodedAudio(file.getvalue(), 60).iterate_pieces(8_000))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "damage",
    [
        {"rate": None},
        {"rate": np.array([0])},
        {"centres": None},
        {"centres": np.zeros(5, np.float32)},
        {"sizes": np.array([3])},
        {"sizes": np.zeros(0, np.int64)},
        {"scale": np.ones(3, np.float32)},
        {"idf": np.ones(3, np.float32)},
    ],
)
def test_damaged_folder_is_refused(kind: Any, damage: dict[str, Any]) -> None:
    state = kind(60).fit(make_hums()).to_state()
    tensors = {name: array for name, array in {**state.tensors, **damage}.items() if array is not None}
    with pytest.raises(ModelFolderError):
        kind.from_state(replace(state, tensors=tensors))


def test_numpy_numbers_are_accepted_as_parameters() -> None:
    assert MfccWords(np.int64(9), rate=np.int64(8_000)).fit(make_hums(2)).fingerprint() == (
        MfccWords(9, rate=8_000).fit(make_hums(2)).fingerprint()
    )


@pytest.mark.parametrize("max_seconds", [60, 0.5])
@pytest.mark.parametrize("kind", ["WAV", "WAVEX", "RF64", "W64", "AIFF", "AU", "CAF"])
def test_truncated_sound_is_refused_even_if_its_start_suffices(kind: str, max_seconds: float) -> None:
    content = encode_sound(make_hum(2), 8_000, kind)
    assert sum(map(len, EncodedAudio(content, max_seconds).iterate_pieces(8_000))) == min(2, max_seconds) * 8_000
    with pytest.raises(UnreadableItemError, match="damaged sound"):
        list(EncodedAudio(content[: int(0.9 * len(content))], max_seconds).iterate_pieces(8_000))


@pytest.mark.parametrize("end", [44, 44 + 2, 44 + 2 * 1_480])
def test_truncated_wav_error_states_the_available_length(end: int) -> None:
    with pytest.raises(UnreadableItemError, match=f"{end - 44:,} bytes of 16,000 are there"):
        EncodedAudio(as_wav(make_hum(1))[:end], 60).read_rate()


@pytest.mark.parametrize("stated", [0xFFFFFFFF, 0x7FFFF000, 16_000 + 36])
def test_wav_with_a_placeholder_length_is_complete(stated: int) -> None:
    """A writer into a pipe does not know the length; others count a header."""
    content = as_wav(make_hum(1))
    (decoded,) = EncodedAudio(content[:40] + stated.to_bytes(4, "little") + content[44:], 60).iterate_pieces(8_000)
    assert len(decoded) == 8_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_words": 0}, "n_words is 0"),
        ({"weighting": "idf"}, "weighting is 'idf'"),
        ({"rate": 10}, "rate is 10"),
        ({"max_seconds": 0}, "max_seconds is 0"),
    ],
)
def test_bad_options_give_one_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MfccWords(**options).fit(make_hums(2))


def test_sounds_and_pictures_are_not_mixed() -> None:
    with pytest.raises(InputError, match="mfcc takes sounds and here holds pictures; use visual-words"):
        MfccWords().fit(ItemList(Path("here"), []))
    with pytest.raises(InputError, match="colour takes pictures and here holds sounds; use mfcc"):
        create_extractor("colour").fit(make_hums(1))
    with pytest.raises(InputError, match="names features of pictures and of sounds"):
        create_extractor("mfcc,colour")
    with pytest.raises(InputError, match="sounds have no further views"):
        MfccWords(20).fit(make_hums(2)).transform(make_hums(2), augment=1)


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "soxr", None)
    with pytest.raises(
        InputError, match=r"sounds need soxr, which is not installed; run: pip install 'wsabie\[audio\]'"
    ):
        MfccWords().fit(make_hums(2))


@pytest.mark.parametrize("extractor_name", ["mfcc", "sai", "mfcc,sai"])
def test_digits_and_speakers_are_distinguished(extractor_name: str, data_dir: Path) -> None:
    """By nearest neighbours of takes 0 to 2 for take 3: 3 digits of 2 speakers, of which chance finds a sixth."""
    source = read_digits(data_dir)
    extractor = create_extractor(extractor_name).fit(source)
    rows = extractor.transform(source)
    X = rows.X.log1p() if rows.counts else rows.X
    X = X.multiply(1 / np.sqrt(X.power(2).sum(axis=1))).tocsr()
    last = np.array([name.endswith("_3") for name in rows.ids])
    near = np.asarray((X[last] @ X[~last].T).todense().argmax(axis=1)).ravel()
    Y = rows.Y.toarray()
    assert (Y[last] == Y[~last][near]).all(axis=1).mean() > 0.8


def test_audio_extractors_are_pickled() -> None:
    (sound,) = MfccWords(max_seconds=5.0).iterate_views(Item("a", b"x", ()))
    assert sound == EncodedAudio(b"x", 5.0)
