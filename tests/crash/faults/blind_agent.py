"""An agent that starts what it was told to start without looking whether it runs already."""

from tests.crash.faults import run_with


def plant() -> None:
    import sys

    from portal.ops import local_agent

    local_agent._AGENT = (sys.executable, "-m", "tests.crash.faults.blind_agent", "agent")


def main_of_agent(arguments: list[str]) -> int:
    from agent import main
    from agent.leases import Leases

    whole = Leases.resume

    def resume(self: Leases) -> None:
        for lease in self._store.active():
            for record in ("claim", "started", "exit"):
                (self._runtime.folder(lease.lease_id) / record).unlink(missing_ok=True)
        whole(self)

    Leases.resume = resume  # type: ignore[method-assign]
    return main.main(arguments)


if __name__ == "__main__":
    import sys

    if sys.argv[1] == "agent":
        sys.exit(main_of_agent(sys.argv[2:]))
    run_with(plant)
