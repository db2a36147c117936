"""`python -m wsabie`: the command line."""

from wsabie.faces.cli.main import run

if __name__ == "__main__":
    run()
