"""`wsabie collection`: the commands about a collection of one's own."""
