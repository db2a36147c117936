"""Heat map of a label in a picture: `python examples/heat_map.py [FOLDER]` writes a PNG per picture."""

import sys
from pathlib import Path

import wsabie

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "heat")
emoji = wsabie.open_source(wsabie.get_sample_path("emoji"))
pictures = wsabie.ItemList(emoji.path, [p for p in emoji if {"animal", "fruit"} & set(p.labels)])

terms = wsabie.VisualWords(n_words=500, size=96).fit(pictures)
rows = terms.transform(pictures)
model = wsabie.Wsabie(dim=16, epochs=10).fit(rows.X, rows.Y, label_names=rows.label_names)

folder.mkdir(parents=True, exist_ok=True)
for picture in pictures.items[:4]:
    heat_map = wsabie.explain_picture(wsabie.Annotator(model, terms), picture.content, "fruit")
    heat_map.save(folder / f"{picture.id}.png")
    print(f"{folder / picture.id}.png: {heat_map.label} {heat_map.score:.2f}")
