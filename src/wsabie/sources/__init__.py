"""Files become records: every source ends as `Rows` (features with labels) or as a stream of `Item`s."""
