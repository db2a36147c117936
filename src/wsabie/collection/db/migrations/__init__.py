"""Migrations of the catalogue's tables, for Alembic."""
