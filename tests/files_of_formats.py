"""A small file or folder of each format, written by the tool that is its home, or as its documentation says.

All hold items of the labels sea and wood, or of the kind of names that the format has.
"""

import json
import shutil
import subprocess
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import soundfile
from PIL import Image
from sklearn.datasets import dump_svmlight_file

from shard_files import in_shards

N = 12
LABELS = [("sea", "wood")[n % 2] for n in range(N)]
WORDS = {"sea": "waves and salt and wind", "wood": "leaves and bark and moss"}
FEATURES = np.array([[n % 2, 1 - n % 2, 0.5 + n / 50] for n in range(N)])
WORDNET = Path(__file__).parent / "io" / "wordnet_cut"


def write_pictures(folder: Path, pattern: str = "{n}.jpg") -> list[Path]:
    files = [folder / pattern.format(n=n, label=label) for n, label in enumerate(LABELS)]
    for n, file in enumerate(files):
        file.parent.mkdir(parents=True, exist_ok=True)
        colour = (20, 90, 200) if LABELS[n] == "sea" else (40, 160, 30)
        Image.new("RGB", (48, 36), tuple(min(255, part + n) for part in colour)).save(file)
    return files


def write_sounds(folder: Path, pattern: str) -> list[Path]:
    files = [folder / pattern.format(n=n, label=label, digit=n % 2) for n, label in enumerate(LABELS)]
    for n, file in enumerate(files):
        file.parent.mkdir(parents=True, exist_ok=True)
        samples = (np.sin(np.arange(8000) * (0.05 if n % 2 else 0.3)) * 9000).astype("<i2")
        if file.suffix == ".mp3":
            soundfile.write(file, samples, 8000)
            continue
        with wave.open(str(file), "wb") as sound:
            sound.setparams((1, 2, 8000, 0, "NONE", "not compressed"))
            sound.writeframes(samples.tobytes())
    return files


def write_lines(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def make_documents() -> pd.DataFrame:
    ids, texts = [f"d{n}" for n in range(N)], [WORDS[label] for label in LABELS]
    return pd.DataFrame({"id": ids, "text": texts, "labels": LABELS})


def write_svmlight(folder: Path) -> Path:
    dump_svmlight_file(FEATURES, np.arange(N) % 2, str(folder / "data.svm"))
    return folder / "data.svm"


def write_shards(folder: Path) -> Path:
    in_shards(write_svmlight(folder), folder / "shards")
    return folder / "shards"


def write_row_parquet(folder: Path) -> Path:
    frame = pd.DataFrame({"features": list(FEATURES), "labels": [[label] for label in LABELS]})
    frame.to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def write_picture_parquet(folder: Path) -> Path:
    images = [file.read_bytes() for file in write_pictures(folder / "originals")]
    shutil.rmtree(folder / "originals")
    pd.DataFrame({"image": images, "labels": pd.Categorical(LABELS)}).to_parquet(folder / "pictures.parquet")
    return folder / "pictures.parquet"


def write_document_parquet(folder: Path) -> Path:
    make_documents().to_parquet(folder / "texts.parquet")
    return folder / "texts.parquet"


def write_polars_parquet(folder: Path) -> Path:
    """Strings as large views and labels as a dictionary, which pandas does not write."""
    pl.from_pandas(make_documents()).cast({"labels": pl.Categorical}).write_parquet(folder / "texts.parquet")
    return folder / "texts.parquet"


def write_polars_csv(folder: Path) -> Path:
    pl.from_pandas(make_documents()).write_csv(folder / "texts.csv")
    return folder / "texts.csv"


def write_polars_lists(folder: Path) -> Path:
    frame = pl.DataFrame({"id": range(N), "features": FEATURES.tolist(), "labels": [[label] for label in LABELS]})
    frame.write_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def write_json_lines(folder: Path) -> Path:
    make_documents().to_json(folder / "texts.jsonl", orient="records", lines=True)
    return folder / "texts.jsonl"


def write_json_array(folder: Path) -> Path:
    make_documents().to_json(folder / "texts.json", orient="records", indent=1)
    return folder / "texts.json"


def write_label_studio(folder: Path) -> Path:
    tasks = [
        {"id": n, "data": {"text": WORDS[label]},
         "annotations": [{"result": [{"type": "choices", "value": {"choices": [label]}}]}]}
        for n, label in enumerate(LABELS)
    ]  # fmt: skip
    return write_lines(folder / "tasks.json", [json.dumps(tasks)])


def write_csv(folder: Path) -> Path:
    make_documents().to_csv(folder / "texts.csv", index=False)
    return folder / "texts.csv"


def write_pairs(folder: Path) -> Path:
    frame = pd.DataFrame({"id": [f"i{n}" for n in range(N)], "label": LABELS})
    frame.to_csv(folder / "pairs.tsv", sep="\t", index=False)
    return folder / "pairs.tsv"


def write_listing(folder: Path) -> Path:
    files = write_pictures(folder / "photos")
    names = [file.relative_to(folder).as_posix() for file in files]
    pd.DataFrame({"file_name": names, "labels": LABELS}).to_csv(folder / "list.csv", index=False)
    return folder / "list.csv"


def write_exiftool(folder: Path) -> Path:
    if shutil.which("exiftool") is None:
        pytest.skip("exiftool of Debian's package libimage-exiftool-perl is not installed")
    write_pictures(folder)
    for label in WORDS:
        names = [f"{n}.jpg" for n in range(N) if LABELS[n] == label]
        subprocess.run(["exiftool", "-q", "-overwrite_original", f"-Subject={label}", *names], cwd=folder, check=True)
    table = subprocess.run(["exiftool", "-json", "-Subject", "-r", "."], cwd=folder, capture_output=True, check=True)
    (folder / "tags.json").write_bytes(table.stdout)
    return folder / "tags.json"


def write_folder(folder: Path) -> Path:
    write_pictures(folder / "photos", "{label}/{n}.jpg")
    return folder / "photos"


def write_metadata(folder: Path) -> Path:
    files = write_pictures(folder / "photos")
    frame = pd.DataFrame({"file_name": [file.name for file in files], "labels": LABELS})
    frame.to_json(folder / "photos" / "metadata.jsonl", orient="records", lines=True)
    return folder / "photos"


def write_sound_folder(folder: Path) -> Path:
    write_sounds(folder / "sounds", "{label}/{n}.wav")
    return folder / "sounds"


def write_text_folder(folder: Path) -> Path:
    for n, label in enumerate(LABELS):
        write_lines(folder / "texts" / label / f"{n}.txt", [WORDS[label]])
    return folder / "texts"


def write_coco(folder: Path) -> Path:
    files = write_pictures(folder / "images")
    categories = [{"id": 1, "name": "sea"}, {"id": 2, "name": "wood"}]
    images = [{"id": n, "file_name": file.name, "width": 48, "height": 36} for n, file in enumerate(files)]
    annotations = [
        {"id": n, "image_id": n, "category_id": 1 + n % 2, "bbox": [2, 2, 40, 30], "area": 1200, "iscrowd": 0}
        for n in range(N)
    ]
    document = {"images": images, "categories": categories, "annotations": annotations}
    return write_lines(folder / "annotations.json", [json.dumps(document)])


def write_voc(folder: Path) -> Path:
    write_pictures(folder / "voc" / "JPEGImages")
    box = "<bndbox><xmin>2</xmin><ymin>2</ymin><xmax>42</xmax><ymax>32</ymax></bndbox>"
    for n, label in enumerate(LABELS):
        size = "<size><width>48</width><height>36</height><depth>3</depth></size>"
        text = f"<annotation><filename>{n}.jpg</filename>{size}<object><name>{label}</name>{box}</object></annotation>"
        write_lines(folder / "voc" / "Annotations" / f"{n}.xml", [text])
    return folder / "voc"


def write_arff(folder: Path) -> Path:
    write_lines(folder / "data.xml", ['<labels><label name="sea"/><label name="wood"/></labels>'])
    head = ["@relation d", *(f"@attribute x{n} numeric" for n in range(3)), *(f"@attribute {y} {{0,1}}" for y in WORDS)]
    rows = [",".join(map(str, [*row, n % 2, 1 - n % 2])) for n, row in enumerate(FEATURES)]
    return write_lines(folder / "data.arff", [*head, "@data", *rows])


def write_fasttext(folder: Path) -> Path:
    return write_lines(folder / "data.txt", [f"__label__{label} {WORDS[label]}" for label in LABELS])


def write_annif(folder: Path) -> Path:
    return write_lines(
        folder / "data.tsv", [f"{WORDS[label]} {n}\t<http://a.b/{label}>" for n, label in enumerate(LABELS)]
    )


def write_packages(folder: Path) -> Path:
    stanzas = [f"Package: p{n}\nDescription: {WORDS[label]}\nTag: use::{label}\n" for n, label in enumerate(LABELS)]
    return write_lines(folder / "main_Packages", stanzas)


def write_glosses(folder: Path) -> Path:
    return shutil.copytree(WORDNET, folder / "wordnet")


def write_citations(folder: Path) -> Path:
    write_lines(folder / "cora.links.txt", ["a0 a1", "a1 a2"])
    return write_lines(folder / "cora.docs.txt", [f"a{n}\t{n % 2}\t{n % 2} {2 + n % 2}" for n in range(N)])


def write_lear(folder: Path) -> Path:
    write_lines(folder / "espgame_dictionary.txt", ["sea", "wood"])
    vectors = np.array([[2, n % 2, 1 - n % 2] for n in range(N)], "<i2")
    (folder / "espgame_train_annot.hvecs").write_bytes(vectors.tobytes())
    return write_lines(folder / "espgame_train_list.txt", [f"01/{n}" for n in range(N)])


def write_open_images(folder: Path) -> Path:
    rows = [f"{n:016x},verification,/m/{label},1" for n, label in enumerate(LABELS)]
    return write_lines(folder / "train-labels.csv", ["ImageID,Source,LabelName,Confidence", *rows])


def write_mirflickr(folder: Path) -> Path:
    return write_lines(
        folder / "tags.csv", [f"{n},{n},./mirflickr/im{n}.jpg,['{label}']" for n, label in enumerate(LABELS)]
    )


def write_nus_wide(folder: Path) -> Path:
    return write_lines(folder / "All_Tags.txt", [f"{n}    {label} " for n, label in enumerate(LABELS)])


def write_iapr(folder: Path) -> Path:
    for n, label in enumerate(LABELS):
        picture = f"<IMAGE>images/01/{n}.jpg</IMAGE>"
        text = f"<DOC><DOCNO>annotations/01/{n}.eng</DOCNO><DESCRIPTION>a {label};</DESCRIPTION>{picture}</DOC>"
        write_lines(folder / "iapr" / "annotations_complete_eng" / "01" / f"{n}.eng", [text])
    return folder / "iapr"


def write_magnatagatune(folder: Path) -> Path:
    write_sounds(folder / "mtt", "0/{n}.mp3")
    rows = [f'"{n}"\t"{n % 2}"\t"{1 - n % 2}"\t"0/{n}.mp3"' for n in range(N)]
    write_lines(folder / "mtt" / "annotations_final.csv", ['"clip_id"\t"sea"\t"wood"\t"mp3_path"', *rows])
    names = ("clip_id", "track_number", "title", "artist", "album", "url", "segmentStart", "segmentEnd", "original_url",
             "mp3_path")  # fmt: skip
    lines = [[str(n), "1", f"song {n}", "Nina", "Blue", "", "0", "29", "", f"0/{n}.mp3"] for n in range(N)]
    table = ["\t".join(f'"{cell}"' for cell in line) for line in (names, *lines)]
    write_lines(folder / "mtt" / "clip_info_final.csv", table)
    return folder / "mtt"


def write_spoken_digits(folder: Path) -> Path:
    write_sounds(folder / "fsdd" / "recordings", "{digit}_theo_{n}.wav")
    write_lines(folder / "fsdd" / "metadata.py", ["metadata = {'theo': {'gender': 'male'}}"])
    return folder / "fsdd"


def write_file(folder: Path) -> Path:
    """A picture with a sidecar, as digiKam writes it."""
    text = (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:subject><rdf:Bag><rdf:li>sea</rdf:li></rdf:Bag></dc:subject></rdf:Description></rdf:RDF></x:xmpmeta>"
    )
    write_lines(folder / "0.jpg.xmp", [text])
    return write_pictures(folder)[0]


WRITERS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "iapr": ("iapr", write_iapr),
    "magnatagatune": ("magnatagatune", write_magnatagatune),
    "spoken digits": ("spoken-digits", write_spoken_digits),
    "VOC": ("voc", write_voc),
    "COCO": ("coco", write_coco),
    "NUS-WIDE": ("nus-wide", write_nus_wide),
    "Cora": ("citations", write_citations),
    "LEAR": ("lear", write_lear),
    "shards": ("shards", write_shards),
    "rows by pandas": ("parquet", write_row_parquet),
    "pictures by pandas": ("parquet", write_picture_parquet),
    "documents by pandas": ("parquet", write_document_parquet),
    "documents by polars": ("parquet", write_polars_parquet),
    "rows by polars": ("parquet", write_polars_lists),
    "picture": ("file", write_file),
    "pictures": ("folder", write_folder),
    "pictures with metadata": ("folder", write_metadata),
    "sounds": ("folder", write_sound_folder),
    "texts": ("folder", write_text_folder),
    "WordNet": ("glosses", write_glosses),
    "Debian": ("packages", write_packages),
    "JSON lines by pandas": ("json", write_json_lines),
    "JSON by pandas": ("json", write_json_array),
    "Label Studio": ("json", write_label_studio),
    "CSV by pandas": ("table", write_csv),
    "CSV by polars": ("table", write_polars_csv),
    "Mulan": ("arff", write_arff),
    "Open Images": ("open-images", write_open_images),
    "scikit-learn": ("svmlight", write_svmlight),
    "fastText": ("fasttext", write_fasttext),
    "Annif": ("annif", write_annif),
    "files by pandas": ("listing", write_listing),
    "exiftool": ("listing", write_exiftool),
    "pairs by pandas": ("pairs", write_pairs),
    "MIRFlickr": ("mirflickr", write_mirflickr),
}
