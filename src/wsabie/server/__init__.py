"""HTTP service with a web application, for annotation, search and review."""
