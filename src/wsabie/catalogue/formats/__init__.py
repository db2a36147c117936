"""Files that hold the tags of a collection: a file for each format, which writes it, reads it, or both."""
