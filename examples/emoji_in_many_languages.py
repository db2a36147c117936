"""Learn from some of the bundled emoji, with labels in 25 languages, and annotate one that was not learned from."""

import wsabie

emoji = wsabie.open_source(wsabie.get_sample_path("emoji"))
shown_labels = {"animal", "fruit", "flower"}
pictures = wsabie.ItemList(emoji.path, [p for p in emoji if shown_labels & set(p.labels)])

rows = wsabie.VisualWords(n_words=500, size=96).fit(pictures).transform(pictures)
parts = wsabie.split(len(rows), by="group", valid=0, test=0.1, ids=rows.ids, groups=rows.groups)
train, test = rows.take(parts.train), rows.take(parts.test)

model = wsabie.Wsabie().fit(train.X, train.Y, label_names=rows.label_names)
bird = test.ids.index("emoji-1f426")
print([label for label, score in model.annotate(test.X[bird], k=6)[0]])
print([label for label, cosine in model.neighbours("animal", k=6)])
