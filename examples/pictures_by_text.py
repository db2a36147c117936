"""Find pictures by free text: pictures and texts are two kinds of things, each with a map of its own into one space."""

from pathlib import Path

import wsabie


def documents(texts: dict[str, str]) -> wsabie.ItemList:
    """Texts by their ids."""
    items = [wsabie.Item(name, text.encode(), ()) for name, text in texts.items()]
    return wsabie.ItemList(Path("texts"), items, "documents")


emoji = wsabie.open_source(wsabie.get_sample_path("emoji"))
shown_labels = {"animal", "fruit", "flower", "vehicle", "drink"}
pictures = wsabie.ItemList(emoji.path, [p for p in emoji if shown_labels & set(p.labels)])
image_rows = wsabie.VisualWords(n_words=500, size=96).fit(pictures).transform(pictures)

captions = documents({p.id: " ".join(p.labels) for p in pictures})  # all that a picture is called, in 25 languages
words = wsabie.create_extractor("words", modality="documents").fit(captions)
text_rows = words.transform(captions)

picture, text = (
    wsabie.EntityKind("picture", image_rows.X, image_rows.ids),
    wsabie.EntityKind("text", text_rows.X, text_rows.ids),
)
same = [(name, name) for name in image_rows.ids]
relations = [wsabie.Relation(text, picture, same), wsabie.Relation(picture, text, same)]
space = wsabie.Space(dim=32, epochs=30).fit(relations)

names = {p.id: p.labels[0] for p in pictures}
questions = words.transform(documents({q: q for q in ("red fruit", "oiseau", "water bird")}))
for question, matches in zip(questions.ids, space.annotate("text", "picture", questions.X, k=4), strict=True):
    print(f"{question}: {', '.join(names[name] for name, score in matches)}")
