"""Fixtures of the command line, for the tables that are run as the shell would."""

from tests.cli.conftest import cars, papers_cli, pictures, rows

__all__ = ["cars", "papers_cli", "pictures", "rows"]
