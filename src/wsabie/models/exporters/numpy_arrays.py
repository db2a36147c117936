"""Export as plain arrays, label names, and an example program of twenty lines that ranks with NumPy."""

from io import BytesIO
from pathlib import Path

import numpy as np

from wsabie.core.machine import collect_versions
from wsabie.models.annotators import Annotator
from wsabie.models.exporters.export_formats import render_template
from wsabie.models.exporters.portable_model import build_portable_model, collect_arrays
from wsabie.storage.atomic_files import create_folder


def write_numpy_arrays(annotator: Annotator, out: Path) -> list[Path]:
    """Write the folder and return its files.

    Raises
    ------
    InputError
        The model is of another kind, or the folder cannot be written.
    """
    model, feature_names = build_portable_model(annotator.model), annotator.feature_names
    arrays = collect_arrays(model)
    names = {"labels.txt": model.labels, **({} if feature_names is None else {"features.txt": feature_names})}
    files = [*(f"{name}.npy" for name in arrays), *names, "predict.py"]
    sizes = {"n_labels": sum(map(bool, model.labels)), "version": collect_versions()["wsabie"]}
    texts = {file: "".join(f"{' '.join(name.split())}\n" for name in listed) for file, listed in names.items()}
    texts["predict.py"] = render_template("predict.py", model=model, arrays=sorted(arrays))
    texts["README.md"] = render_template("arrays.md", model=model, files=files, **sizes)
    with create_folder(out) as draft:
        for name, array in arrays.items():
            content = BytesIO()  # np.save to a file would hide that a disk is full
            np.save(content, array, allow_pickle=False)
            (draft / f"{name}.npy").write_bytes(content.getbuffer())
        for file, text in texts.items():
            (draft / file).write_text(text, encoding="utf-8")
    return [out / file for file in [*files, "README.md"]]
