"""Use is metered in another transaction than the one that ends the job."""

from tests.crash.faults import run_with


def plant() -> None:
    from jobs.services import ingest
    from tests.crash.faults.apart import split_off

    split_off(ingest, "meter")


if __name__ == "__main__":
    run_with(plant)
