"""A collection of one's own in a database: its items, labels, annotations and models, and what people do with them."""
