"""`python -m wsabie.collection.jobs FOLDER`: the process of the next job of a collection."""

import sys
from pathlib import Path

from wsabie.core.gc_tuning import reduce_collections


def run() -> None:
    """Run the next job of the folder that the command line names."""
    reduce_collections()
    from wsabie.collection.jobs.queue import FAILURE_CODE, run_next_job
    from wsabie.core.errors import WsabieError

    try:
        run_next_job(Path(sys.argv[1]))
    except WsabieError as error:
        sys.stderr.write(f"wsabie: a job cannot be done: {error}\n")
        sys.exit(FAILURE_CODE)


if __name__ == "__main__":
    run()
