"""A collection of one's own in a database: items, labels, annotations, models, and what people do."""
