"""The records, by document."""
