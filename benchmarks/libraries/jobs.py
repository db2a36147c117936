"""A queue of jobs in the database of the collection, and a journal of changed rows."""

from pathlib import Path
from typing import Any

from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert, update

from benchmarks.libraries.measure import Work, compare
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.db.tables import labels
from wsabie.collection.folder.collection import create_collection, open_collection
from wsabie.collection.jobs.queue import claim_job, enqueue_job, update_jobs

JOBS, ROWS = 20, 200


def run(folder: Path) -> None:
    """Ask for jobs and take them; add rows and change them."""
    _compare_queues(folder)
    _compare_journals(folder)


def _compare_queues(folder: Path) -> None:
    from wsabie.collection.db.tables import jobs

    def ours() -> Work:
        collection = _open(folder / "queue")

        def work() -> int:
            for number in range(JOBS):
                enqueue_job(collection, "tidy", {"min_score": number / JOBS}, by="local")
            n_jobs = 0
            while job := claim_job(collection):
                update_jobs(collection, jobs.c.id == job.id, state="done")
                n_jobs += 1
            return n_jobs

        return work

    def huey() -> Work:
        from huey import SqliteHuey

        queue = SqliteHuey(filename=str(folder / "huey.db"), fsync=True)

        @queue.task()  # type: ignore[untyped-decorator]
        def tidy(min_score: float) -> float:
            return min_score

        def work() -> int:
            for number in range(JOBS):
                tidy(number / JOBS)
            n_jobs = 0
            while task := queue.dequeue():
                queue.execute(task)
                n_jobs += 1
            return n_jobs

        return work

    def apscheduler() -> Work:
        from datetime import UTC, datetime

        from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
        from apscheduler.schedulers.background import BackgroundScheduler

        scheduler = BackgroundScheduler(jobstores={"default": SQLAlchemyJobStore(f"sqlite:///{folder}/aps.db")})
        scheduler.start(paused=True)

        def work() -> int:
            for number in range(JOBS):
                scheduler.add_job(round, "date", run_date=datetime.now(UTC), args=[number / JOBS])
            waiting = scheduler.get_jobs()
            for job in waiting:
                job.remove()
            return len(waiting)

        return work

    entrants = {"ours": ours, "huey SqliteHuey": huey, "apscheduler, paused": apscheduler}
    compare(f"{JOBS} jobs asked for and taken", entrants, str, with_memory=False)


def _open(folder: Path) -> Any:
    (folder / "pictures").mkdir(parents=True)
    create_collection(folder / "pictures")
    return open_collection(folder / "pictures").__enter__()


def _compare_journals(folder: Path) -> None:
    def ours() -> Work:
        collection = _open(folder / "journal")
        count = iter(range(10**6))

        def work() -> int:
            with begin_entry(collection.engine, by="local", action="test", summary="") as change:
                names = [f"label {next(count)}" for _ in range(ROWS)]
                numbers = change.add(labels, [{"name": name, "language": "", "wordnet": ""} for name in names])
                change.update(labels, {number: {"wordnet": "n01440764"} for number in numbers})
            return len(numbers)

        return work

    def plain() -> Work:
        engine = create_engine(f"sqlite:///{folder}/plain.db")
        table = Table("labels", MetaData(), Column("id", Integer, primary_key=True), Column("name", String))
        table.metadata.create_all(engine)

        def work() -> int:
            with engine.begin() as connection:
                connection.execute(insert(table), [{"name": f"label {number}"} for number in range(ROWS)])
                connection.execute(update(table).values(name="x"))
            return ROWS

        return work

    entrants = {"ours": ours, "SQLAlchemy without a journal": plain, "SQLAlchemy-Continuum": lambda: _continuum(folder)}
    compare(f"{ROWS:,} rows added and changed", entrants, str, with_memory=False)


def _continuum(folder: Path) -> Work:
    from sqlalchemy.orm import Session, configure_mappers, declarative_base
    from sqlalchemy_continuum import make_versioned

    make_versioned(user_cls=None)
    base: Any = declarative_base()
    columns = {"id": Column(Integer, primary_key=True), "name": Column(String)}
    kind: Any = type("Label", (base,), {"__tablename__": "labels", "__versioned__": {}, **columns})
    configure_mappers()
    engine = create_engine(f"sqlite:///{folder}/continuum.db")
    base.metadata.create_all(engine)

    def work() -> int:
        with Session(engine, expire_on_commit=False) as session:
            rows = [kind(name=f"label {number}") for number in range(ROWS)]
            session.add_all(rows)
            session.commit()
            for row in rows:
                row.name = "x"
            session.commit()
        return len(rows)

    return work
