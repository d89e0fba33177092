"""The agent as the portal meets it: a process of its own behind mutual TLS."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor, as_completed

import pytest

from agent import wire
from agent.server import MOST_LONG_POLLS
from tests.agent.support import (
    DEADLINE_S,
    AgentProcess,
    Authority,
    Client,
    Follower,
    absent,
    eventually,
    running,
)


@pytest.fixture
def client(shared_agent: AgentProcess) -> Client:
    return shared_agent.client()


@pytest.fixture
def gpu(client: Client) -> str:
    return first_gpu(client)


def first_gpu(client: Client) -> str:
    return wire.Inventory.model_validate(client.get("/v1/inventory")).gpus[0].uuid


@pytest.fixture
def lease() -> str:
    return str(uuid.uuid4())


def last_event(client: Client) -> int:
    return wire.LeaseList.model_validate(client.get("/v1/leases")).next_event - 1


def test_the_inventory_says_what_is_simulated(client: Client) -> None:
    found = wire.Inventory.model_validate(client.get("/v1/inventory"))
    assert [(gpu.model, gpu.mode, gpu.memory_mib) for gpu in found.gpus] == [
        ("NVIDIA H200", "share", 143155),
        ("NVIDIA H200", "mig", 143155),
    ]
    assert all(gpu.simulated and gpu.healthy for gpu in found.gpus)
    assert found.isolated is (os.geteuid() == 0)


def test_a_job_from_its_order_to_its_log(client: Client, gpu: str, lease: str) -> None:
    before = last_event(client)
    follower = Follower(client, before)
    reply = client.put(running(lease, gpu, "sh", "-c", "echo hello; exit 3"))
    assert wire.LeaseReport.model_validate(reply.json).observed is wire.Observed.ACCEPTED
    assert follower.started(lease).observed is wire.Observed.RUNNING
    end = follower.ended(lease)
    assert (end.end_reason, end.exit_code) == (wire.EndReason.EXITED, 3)
    log = client.ask("GET", f"/v1/leases/{lease}/log?offset=0&wait_ms=1000")
    assert log.body == b"hello\n"
    assert log.headers[wire.LOG_SIZE_HEADER] == "6"
    assert log.headers[wire.LOG_FINAL_HEADER] == "true"
    listed = wire.LeaseList.model_validate(client.get("/v1/leases"))
    assert end in listed.leases
    assert listed.next_event == before + 3
    assert wire.LeaseReport.model_validate(client.get(f"/v1/leases/{lease}")) == end


def test_a_refusal_is_a_problem_with_a_way_out(client: Client, gpu: str, lease: str) -> None:
    reply = client.put(running(lease, gpu, "true", memory_mib=200_000))
    problem = wire.Problem.model_validate(reply.json)
    assert (reply.status, problem.code) == (422, "agent.slice_too_large")
    assert problem.hint
    assert reply.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        (("GET", "/v2", None), 404, "agent.path_unknown"),
        (("PUT", "/v1/inventory", b"{}"), 404, "agent.path_unknown"),
        (("GET", "/v1/leases/unknown", None), 404, "agent.lease_unknown"),
        (("GET", "/v1/leases/..", None), 404, "agent.lease_unknown"),
        (("GET", "/v1/leases/unknown/log", None), 404, "agent.lease_unknown"),
        (("GET", "/v1/events?after=x", None), 422, "agent.invalid"),
        (("GET", "/v1/events?after=-1", None), 422, "agent.invalid"),
        (("PUT", "/v1/leases/L", b"{"), 400, "agent.malformed"),
        (("PUT", "/v1/leases/L", b"\xff"), 400, "agent.malformed"),
        (("PUT", "/v1/leases/L", b"[]"), 422, "agent.invalid"),
        (("PUT", "/v1/leases/L", b'{"lease_id": "L"}'), 422, "agent.invalid"),
    ],
)
def test_bad_input_gets_a_problem_and_the_connection_lives(
    client: Client, request_: tuple[str, str, bytes | None], status: int, code: str
) -> None:
    reply = client.ask(*request_)
    assert (reply.status, reply.json["code"]) == (status, code)
    assert client.ask("GET", "/v1/inventory").status == 200


def test_the_field_of_a_bad_message_is_named(client: Client, gpu: str) -> None:
    spec = running("L", gpu, "true").model_dump(mode="json")
    spec["slice"]["memory_mib"] = 0
    reply = client.ask("PUT", "/v1/leases/L", json.dumps(spec).encode())
    assert (reply.status, reply.json["field"]) == (422, "slice.memory_mib")
    other = client.ask("PUT", "/v1/leases/M", json.dumps(spec).encode())
    assert other.status == 422


def test_unknown_fields_of_a_newer_portal_are_ignored(client: Client, gpu: str, lease: str) -> None:
    spec = running(lease, gpu, "true").model_dump(mode="json") | {"new": 1, "protocol_version": 2}
    assert client.ask("PUT", f"/v1/leases/{lease}", json.dumps(spec).encode()).status == 200


def test_a_body_too_large_is_not_read(client: Client) -> None:
    client.connection.putrequest("PUT", "/v1/leases/L")
    client.connection.putheader("Content-Length", str(wire.MAX_BODY_BYTES + 1))
    client.connection.endheaders()
    assert client.connection.getresponse().status == 413


def test_a_node_is_not_the_portal_but_may_read_metrics(shared_agent: AgentProcess) -> None:
    other = shared_agent.client(wire.NODE_URI_PREFIX + "other")
    reply = other.ask("GET", "/v1/inventory")
    assert (reply.status, reply.json["code"]) == (403, "agent.not_the_portal")
    metrics = other.ask("GET", "/metrics")
    assert metrics.status == 200
    assert b"gpucommons_gpu_healthy{" in metrics.body


def test_a_peer_of_another_authority_is_not_heard(shared_agent: AgentProcess) -> None:
    stranger = Authority().client_context(shared_agent.data.parent / "strangers", wire.PORTAL_URI)
    stranger.load_verify_locations(cadata=shared_agent.authority.pem)
    client = Client(shared_agent.address, stranger)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        client.ask("GET", "/v1/inventory")
    client.close()


def test_a_stalled_handshake_blocks_nobody(client: Client) -> None:
    host, port = client.connection.host, client.connection.port
    stalled = [socket.create_connection((host, port)) for _ in range(20)]
    assert client.ask("GET", "/v1/inventory").status == 200
    for connection in stalled:
        connection.close()


def test_a_long_poll_ends_at_its_time_or_with_its_event(
    shared_agent: AgentProcess, client: Client, gpu: str, lease: str
) -> None:
    before = last_event(client)
    empty = client.get(f"/v1/events?after={before}&wait_ms=50")
    assert (empty["events"], empty["next_after"]) == ([], before)
    other = shared_agent.client()
    answers: list[wire.EventBatch] = []

    def poll() -> None:
        batch = other.get(f"/v1/events?after={before}&wait_ms=30000")
        answers.append(wire.EventBatch.model_validate(batch))

    waiting = threading.Thread(target=poll)
    waiting.start()
    client.put(running(lease, gpu, "sleep", "100"))
    waiting.join(DEADLINE_S)
    assert [event.kind for event in answers[0].events] == [wire.EventKind.STARTED]
    assert answers[0].next_after == before + 1
    client.put(absent(lease, 2))
    Follower(client, before).ended(lease)


def test_ten_jobs_survive_the_agents_sudden_death(agent: AgentProcess) -> None:
    client = agent.client()
    gpu, follower = first_gpu(client), Follower(client)
    for number in range(10):
        client.put(running(f"L{number}", gpu, "sh", "-c", f"sleep 1; exit {number}"))
    for number in range(10):
        follower.started(f"L{number}")
    agent.kill()
    agent.start()
    later = Follower(agent.client(), follower.after)
    assert [later.ended(f"L{number}").exit_code for number in range(10)] == list(range(10))
    kinds = [(event.kind, event.lease and event.lease.lease_id) for event in later.events]
    assert len(kinds) == len(set(kinds)) == 10


def test_a_second_agent_on_the_same_data_is_refused(shared_agent: AgentProcess) -> None:
    record = (shared_agent.data / "agent.json").read_text()
    second = AgentProcess(shared_agent.data, shared_agent.authority)
    assert second.run().wait(DEADLINE_S) == 1
    assert (shared_agent.data / "agent.json").read_text() == record


def test_jobs_end_with_the_node_or_outlive_its_agent_as_wished(agent: AgentProcess) -> None:
    client = agent.client()
    gpu, follower = first_gpu(client), Follower(client)
    client.put(running("A", gpu, "sleep", "100"))
    pid = follower.started("A").pid
    assert agent.terminate() == 0
    assert not (agent.data / "agent.json").exists()
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)

    agent.stop_jobs = False
    agent.start()
    client = agent.client()
    follower = Follower(client, follower.after)
    assert follower.ended("A").end_reason is wire.EndReason.NODE_STOPPED
    client.put(running("B", gpu, "sleep", "100"))
    pid = follower.started("B").pid
    assert agent.terminate() == 0

    agent.stop_jobs = True
    agent.start()
    client = agent.client()
    assert client.get("/v1/leases/B")["pid"] == pid
    client.put(absent("B", 2))
    assert Follower(client).ended("B").end_reason is wire.EndReason.STOPPED


def test_faults_from_outside_are_told(
    shared_agent: AgentProcess, client: Client, lease: str
) -> None:
    gpu = wire.Inventory.model_validate(client.get("/v1/inventory")).gpus[1].uuid
    follower = Follower(client, last_event(client))
    faults = shared_agent.data / "simulated_faults.json"
    faults.write_text(json.dumps({gpu: "XID 79"}))

    def told(*, healthy: bool) -> wire.GpuInfo | None:
        follower.read()
        return next(
            (event.gpu for event in follower.events if event.gpu and event.gpu.healthy is healthy),
            None,
        )

    assert eventually(lambda: told(healthy=False)).health_reason == "XID 79"
    assert client.put(running(lease, gpu, "true")).json["code"] == "agent.gpu_unhealthy"
    faults.unlink()
    assert eventually(lambda: told(healthy=True)).health_reason is None


def test_samples_are_of_running_leases(client: Client, gpu: str, lease: str) -> None:
    client.put(running(lease, gpu, "sleep", "100", compute_milli=250))

    def measured() -> wire.LeaseSample | None:
        found = wire.SampleList.model_validate(client.get("/v1/samples"))
        return next((sample for sample in found.leases if sample.lease_id == lease), None)

    assert eventually(measured).memory_used_mib is None
    client.put(absent(lease, 2))


def test_waiting_calls_are_bounded(agent: AgentProcess) -> None:
    clients = [agent.client() for _ in range(MOST_LONG_POLLS + 1)]

    def poll(client: Client) -> int | None:
        try:
            return client.ask("GET", "/v1/events?after=0&wait_ms=30000").status
        except (OSError, http.client.HTTPException):
            return None

    with ThreadPoolExecutor(len(clients)) as pool:
        polls = [pool.submit(poll, client) for client in clients]
        first = next(as_completed(polls, DEADLINE_S))
        assert first.result() == 503
        assert agent.terminate() == 0
    assert [found.result() for found in polls].count(503) == 1
