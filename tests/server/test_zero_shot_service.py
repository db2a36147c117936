"""Over HTTP: the model that knows only the names of labels, its suggestions, and searches in free words."""

import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from wsabie.collection.folder.collection import create_collection
from wsabie.collection.labels.label_edits import add_labels
from wsabie.collection.learning.suggestions import apply_model
from wsabie.collection.scan.scanner import scan_collection
from wsabie.features.encoders.text_encoders import is_sentence_encoder_installed
from wsabie.samples import get_photo_folder
from wsabie.server.app import make_app
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import CollectionModelHolder
from wsabie.server.service_context import ServiceContext


@pytest.mark.skipif(not is_sentence_encoder_installed(), reason="the extra `words` is not installed; run `make setup`")
def test_untagged_photos_have_suggestions_and_are_found(tmp_path: Path) -> None:
    names = ["butterfly", "penguin", "toucan"]
    for name in names:
        shutil.copy(get_photo_folder() / f"animal/erase_{name}.jpg", tmp_path / f"{name}.jpg")
    with create_collection(tmp_path) as collection:
        add_labels(collection, names, by="eve")
        scan_collection(collection, by="eve", tags="none")
        apply_model(collection, by="eve", threads=1)
        context = ServiceContext(ServiceLimits(), None, CollectionModelHolder(collection), collection)
        client = TestClient(make_app(context), base_url="http://localhost")
        status = client.get("/api/v1/collection").json()
        assert (status["model"]["method"], status["thresholds"]) == ("zero-shot", [])
        assert status["suggestions"] >= 3
        assert client.get("/api/v1/models").json()["forecast"]["method"] == "full"
        group, alike = client.get("/api/v1/search?text=flying%20insect&k=1").json()["groups"]
        assert (group["items"][0]["path"], group["reason"]) == (
            "butterfly.jpg",
            "what the network sees is near 'flying insect'",
        )
        assert (len(alike["items"]), alike["reason"]) == (1, "looks like butterfly.jpg, the first of these")
        item = group["items"][0]["id"]
        details = client.get(f"/api/v1/items/{item}/annotate").json()
        assert details["results"][0]["labels"][0]["label"] == "butterfly"
        assert len(client.get(f"/api/v1/items/{item}/similar").json()["items"]) == 2
        assert client.get(f"/api/v1/items/{item}/heat?label=butterfly").status_code == 200
        search = "/api/v1/search?text=flying%20insect"
        label_filter = "&label=butterfly&label_state=suggested&min_probability=0.05"
        for condition in ("&words=butter&unlabelled=true", f"&ids={item}", label_filter):
            (group,) = client.get(search + condition).json()["groups"]
            assert [found["path"] for found in group["items"]] == ["butterfly.jpg"], condition
        assert client.get(f"{search}&words=nowhere").json()["groups"] == []
        excluded = client.get("/api/v1/search?text=wild%20animal%20-monarch").json()
        assert excluded["excluded"] == ["monarch"]
        assert "'monarch' is not a label; what the network sees nearer to it is left out" in excluded["notes"]
        assert "butterfly.jpg" not in {found["path"] for group in excluded["groups"] for found in group["items"]}
        assert (
            client.get(f"{search}&state=missing").status_code == client.get("/api/v1/items?sort=x").status_code == 422
        )
