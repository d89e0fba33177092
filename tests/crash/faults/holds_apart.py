"""Quota is given back in another transaction than the one that ends the job."""

from tests.crash.faults import run_with


def plant() -> None:
    from quotas.services import holds
    from tests.crash.faults.apart import split_off

    split_off(holds, "release_many")


if __name__ == "__main__":
    run_with(plant)
