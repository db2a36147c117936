"""Feature extraction: from pictures, sounds and documents to rows of features."""
