"""Files that hold the tags of a collection; each module writes or reads one format."""
