"""`wsabie collection`: the commands of a collection."""
