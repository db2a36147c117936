"""States that attacks begin with: pictures, collections, rows and models, made by the commands themselves."""

import io
import json
import os
import random
import signal
from pathlib import Path
from typing import Any

from PIL import Image
from tests.faults.conftest import emoji
from tests.faults.lab import Lab, require_success

N_PICTURES = 24
COMPARE = "compare rows.txt --models popularity,nearest,one-vs-rest --work w --threads 1"
QUICK = ("--epochs", "2", "--dim", "8", "--threads", "1")


def pictures(_: Lab, folder: Path) -> None:
    """Two dozen pictures of three formats, with tags in a table."""
    photos = folder / "photos"
    photos.mkdir()
    lines = []
    for number, row in enumerate(emoji(400, N_PICTURES)):
        ending = ("webp", "png", "jpg")[number % 3]
        content = row["image"]
        assert isinstance(content, bytes)
        if ending != "webp":
            out = io.BytesIO()
            Image.open(io.BytesIO(content)).convert("RGB").save(out, {"jpg": "JPEG", "png": "PNG"}[ending])
            content = out.getvalue()
        (photos / f"{number:02d}.{ending}").write_bytes(content)
        lines.append(json.dumps({"file_name": f"{number:02d}.{ending}", "labels": row["labels"][1:4]}))  # type: ignore[index]
    (photos / "metadata.jsonl").write_text("\n".join(lines))
    tags = "".join(f"{number:02d}.{('webp', 'png', 'jpg')[number % 3]},from table\n" for number in range(6))
    (folder / "tags.csv").write_text(f"file_name,labels\n{tags}")


def collection(lab: Lab, folder: Path) -> None:
    """A collection of these, with decisions of a person."""
    pictures(lab, folder)
    require_success(lab.run(folder, "collection", "init", "photos", "--by", "eve"))
    for label in ("mine", "yours"):
        require_success(lab.run(folder, "collection", "tag", "photos", "1", "2", "3", "--accept", label, "--by", "eve"))


def trained_collection(lab: Lab, folder: Path) -> None:
    """A collection with a model and suggestions."""
    collection(lab, folder)
    require_success(lab.run(folder, "collection", "train", "photos", "--by", "eve", *QUICK))


def collection_with_two_models(lab: Lab, folder: Path) -> None:
    """A collection with two models, of which the second is in use."""
    trained_collection(lab, folder)
    words = ("collection", "train", "photos", "--by", "eve", "--from-scratch", "--accept-worse", *QUICK)
    require_success(lab.run(folder, *words))


def collection_with_many_models(lab: Lab, folder: Path) -> None:
    """A collection of so many pictures that an index of them is a gain, with a model."""
    pictures(lab, folder)
    for number in range(1000):
        colour = (number % 256, number // 256 * 60, 0)
        Image.new("RGB", (2, 2), colour).save(folder / "photos" / f"small {number}.png")
    require_success(lab.run(folder, "collection", "init", "photos", "--by", "eve"))
    require_success(lab.run(folder, "collection", "train", "photos", "--by", "eve", "--features", "colour", *QUICK))


def exported(lab: Lab, folder: Path) -> None:
    """A collection, and what was exported from it."""
    collection(lab, folder)
    require_success(lab.run(folder, "collection", "export", "photos", "out", "--as", "imagefolder"))
    require_success(lab.run(folder, "collection", "export", "photos", "out.csv"))
    require_success(lab.run(folder, "collection", "export", "photos", "out.json"))


def backed_up(lab: Lab, folder: Path) -> None:
    """A collection and a backup of it."""
    collection(lab, folder)
    require_success(lab.run(folder, "collection", "backup", "photos", "--out", "b.db"))


def rows(_: Lab, folder: Path) -> None:
    """Rows of words with two labels each, and more of them; a text; pairs."""
    for name, n, seed in (("rows.txt", 120, 0), ("more.txt", 30, 1)):
        (folder / name).write_text(_rows_text(n, seed))
    (folder / "text.txt").write_text("a toad is an amphibian and frogs such as bullfrogs are near water\n" * 200)
    documents = (json.dumps({"text": f"a toad is animal {n % 7}", "labels": [f"l{n % 3}"]}) for n in range(40))
    (folder / "documents.jsonl").write_text("\n".join(documents))
    (folder / "labels.txt").write_text("".join(f"l{label}\n" for label in range(12)))
    (folder / "kinds.tsv").write_text("".join(f"l{label}\tl{label // 2}\n" for label in range(2, 12)))
    chance = random.Random(0)  # noqa: S311
    plays = (f"u{chance.randrange(40)}\ts{chance.randrange(12)}\t{chance.randrange(1, 9)}\n" for _ in range(400))
    (folder / "plays.tsv").write_text("".join(plays))


def _rows_text(n: int, seed: int) -> str:
    chance, lines = random.Random(seed), []  # noqa: S311
    for number in range(n):
        group = number % 6
        words = " ".join(f"w{5 * group + word}" for word in chance.sample(range(5), 3))
        lines.append(f"__label__l{2 * group} __label__l{2 * group + 1} {words}\n")
    return "".join(lines)


def model(lab: Lab, folder: Path) -> None:
    """Rows, and a model of them."""
    rows(lab, folder)
    require_success(lab.run(folder, "train", "rows.txt", "--model", "m", "--replay", "auto", *QUICK))


def shards(lab: Lab, folder: Path) -> None:
    """Rows as shards."""
    rows(lab, folder)
    require_success(lab.run(folder, "shards", "rows.txt", "--out", "s", "--rows", "40"))


def wide_model(lab: Lab, folder: Path) -> None:
    """A model of many labels, of which an index is a gain."""
    lines = (f"__label__l{number} w{number % 40} w{number % 37}\n" for number in range(1100))
    (folder / "rows.txt").write_text("".join(lines))
    words = ("train", "rows.txt", "--model", "m", "--hold-out", "0", *QUICK)
    require_success(lab.run(folder, *words))


def stopped(lab: Lab, folder: Path) -> None:
    """Rows and the checkpoint of a training that was killed."""
    rows(lab, folder)
    words = ("train", "rows.txt", "--model", "m", "--epochs", "40", "--dim", "8", "--threads", "1")
    call = "tests.faults.states:train_and_save"
    events = require_success(lab.run(folder, *words, call=call)).events
    assert lab.run(folder, *words, call=call, kill_at=events // 2).code < 0


def train_and_save(*_: str) -> None:
    """Run the command with a checkpoint after every epoch."""
    from wsabie.cli.main import run
    from wsabie.training.checkpoints import CheckpointFolder

    init = CheckpointFolder.__init__
    CheckpointFolder.__init__ = lambda *arguments, **settings: init(*arguments, **{**settings, "every": 0.0})  # type: ignore[method-assign]
    run()


def space(lab: Lab, folder: Path) -> None:
    """A space of labels and their kinds, declared by a TOML file."""
    rows(lab, folder)
    (folder / "space.toml").write_text('[relations.is-a]\nquery = "word"\ntarget = "kind"\npairs = "kinds.tsv"\n')
    require_success(lab.run(folder, "train", "space.toml", "--model", "m", *QUICK))


def linear_model(lab: Lab, folder: Path) -> None:
    """A linear ranker."""
    rows(lab, folder)
    require_success(
        lab.run(folder, "train", "rows.txt", "--model", "m", "--kind", "linear-warp", "--epochs", "2", "--threads", "1")
    )


def neighbours(lab: Lab, folder: Path) -> None:
    """Nearest neighbours."""
    rows(lab, folder)
    require_success(lab.run(folder, "train", "rows.txt", "--model", "m", "--kind", "nearest"))


def ensemble(lab: Lab, folder: Path) -> None:
    """An ensemble of two."""
    rows(lab, folder)
    require_success(lab.run(folder, "train", "rows.txt", "--model", "m", "--ensemble", "2", *QUICK))


def classifiers(lab: Lab, folder: Path) -> None:
    """One classifier per label."""
    rows(lab, folder)
    require_success(lab.run(folder, "train", "rows.txt", "--model", "m", "--kind", "one-vs-rest"))


def documents_model(lab: Lab, folder: Path) -> None:
    """A model with a dictionary of words."""
    rows(lab, folder)
    require_success(lab.run(folder, "train", "documents.jsonl", "--model", "m", *QUICK))


def picture_model(lab: Lab, folder: Path) -> None:
    """A model of pictures, with a dictionary of visual words."""
    pictures(lab, folder)
    words = ("train", "photos", "--model", "m", "--n-words", "20", "--features", "visual-words,colour", *QUICK)
    require_success(lab.run(folder, *words))


def indexed(lab: Lab, folder: Path) -> None:
    """A model with an index of its labels."""
    wide_model(lab, folder)
    (folder / "more.txt").write_text("__label__l1 w1 w2\n__label__l2 w3 w4\n")
    require_success(lab.run(folder, "index", "m", "--kind", "int8", "--threads", "1"))


def tuned(lab: Lab, folder: Path) -> None:
    """Trials of a search for parameters."""
    rows(lab, folder)
    words = "tune rows.txt --out t --trials 2 --set epochs=2 --set dim=8 --threads 1"
    require_success(lab.run(folder, *words.split()))


def compared(lab: Lab, folder: Path) -> None:
    """Finished models of a comparison that was killed."""
    rows(lab, folder)
    assert lab.run(folder, *COMPARE.split(), call="tests.faults.states:compare_and_stop").code < 0


def compare_and_stop(*_: str) -> None:
    """Run the command up to its second model."""
    from wsabie.cli.main import run
    from wsabie.workflows.compare.result_store import ResultStore

    add = ResultStore.add

    def add_or_stop(store: ResultStore, name: str, result: Any) -> None:
        add(store, name, result)
        if store.n_results > 1:
            os.kill(os.getpid(), signal.SIGKILL)

    ResultStore.add = add_or_stop  # type: ignore[method-assign]
    run()


def settings(lab: Lab, folder: Path) -> None:
    """A TOML file with parameters."""
    rows(lab, folder)
    (folder / "c.toml").write_text(
        'dim = 8\nepochs = 2\nloss = "warp"\nmax_norm = 1.5\nsampler = "uniform"\nseed = 3\n'
    )


def results(lab: Lab, folder: Path) -> None:
    """Features with their dictionary, and word vectors with their cache."""
    pictures(lab, folder)
    rows(lab, folder)
    require_success(lab.run(folder, "features", "images", "photos", "--out", "f.parquet", "--n-words", "20"))
    require_success(lab.run(folder, "vectors", "train", "text.txt", "--out", "v.vec", "--dim", "4"))
    require_success(lab.run(folder, "vectors", "info", "v.vec"))


def token_file(lab: Lab, folder: Path) -> None:
    """A file of two tokens."""
    require_success(lab.run(folder, "token", "tokens", "eve"))
    require_success(lab.run(folder, "token", "tokens", "adam", "--role", "write"))
