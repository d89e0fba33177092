"""Nodes, enrolment, quotas, prices and use."""

from datetime import timedelta

from portal.core.clock import utc_now
from tests.builders import H200

JSON = "application/json"


def test_nodes_show_their_gpus_as_simulated(here):
    client = here.program("viewer")

    [node] = client.get("/api/v1/nodes").json()["items"]
    [gpu] = client.get("/api/v1/gpus").json()["items"]

    assert node["name"] == "node-1"
    assert gpu["simulated"] is True
    assert gpu["utilisation_percent"] is None
    assert node["gpus"] == [gpu]


def test_a_code_lets_one_node_in(here, client):
    admin = here.program("platform_admin")

    code = admin.post("/api/v1/nodes/codes", {"node_name": "n2"}, content_type=JSON).json()["code"]
    wrong = client.post(
        "/api/v1/nodes/enrol",
        {"code": code, "node_name": "n2", "address": "https://127.0.0.1:1", "csr_pem": "x"},
        content_type=JSON,
    )

    assert (wrong.status_code, wrong.json()["code"]) == (422, "fleet.csr_invalid")


def test_an_unknown_field_of_a_newer_agent_is_ignored(here, client):
    answer = client.post(
        "/api/v1/nodes/enrol",
        {"code": "c", "node_name": "n", "address": "https://h:1", "csr_pem": "x", "colour": 1},
        content_type=JSON,
    )

    assert answer.json()["code"] != "api.unknown_field"


def test_a_limit_is_set_from_above(here):
    admin = here.program("tenant_admin")

    done = admin.put("/api/v1/quotas/projects/vision", {"limit_milli": 500}, content_type=JSON)
    own = admin.put("/api/v1/quotas/tenants/research", {"limit_milli": 9000}, content_type=JSON)

    assert done.json()["limit_milli"] == 500
    assert own.status_code in {403, 404}
    assert here.program("viewer").get("/api/v1/quotas/projects/vision").json() == done.json()


def test_a_limit_below_what_a_job_takes_is_explained(here):
    here.program("tenant_admin").put(
        "/api/v1/quotas/projects/vision", {"limit_milli": 100}, content_type=JSON
    )

    refused = here.program("member").post(
        "/api/v1/jobs",
        {"project": "vision", "command": ["true"], "memory_mib": 8192, "compute_milli": 250},
        content_type=JSON,
    )

    assert refused.json()["code"] == "quotas.never_fits"
    assert "100" in refused.json()["detail"]


def test_a_negative_limit_is_refused(here):
    answer = here.program("tenant_admin").put(
        "/api/v1/quotas/projects/vision", {"limit_milli": -1}, content_type=JSON
    )

    assert (answer.status_code, answer.json()["field"]) == (422, "limit_milli")


def test_prices_are_published_and_listed(here):
    admin = here.program("platform_admin")

    published = admin.post(
        "/api/v1/prices", {"rates": {"*": 1_000_000, H200: 3_000_000}}, content_type=JSON
    )
    listed = here.program("viewer").get("/api/v1/prices").json()["items"]

    assert published.status_code == 201
    assert [price["rates"] for price in listed] == [
        {"*": 1_000_000},
        {"*": 1_000_000, H200: 3_000_000},
    ]
    assert listed[1] == published.json()


def test_a_price_in_the_past_is_refused(here):
    now = utc_now()
    answer = here.program("platform_admin").post(
        "/api/v1/prices",
        {"rates": {"*": 2}, "effective_from": (now - timedelta(days=1)).isoformat()},
        content_type=JSON,
    )

    assert (answer.status_code, answer.json()["code"]) == (422, "billing.price_too_soon")


def test_use_of_nothing_is_nothing(here):
    shown = here.program("viewer").get("/api/v1/usage", {"project": "vision"}).json()

    assert shown["items"] == []
    assert shown["total"]["cost"]["amount_micros"] == 0


def test_probes_and_metrics_answer(here, client):
    here.job()

    metrics = client.get("/metrics").content.decode()
    ready = client.get("/readyz").json()

    assert client.get("/livez").json() == {"status": "alive"}
    assert ready["parts"] == {"database": True, "migrations": True, "broker": True}
    assert 'gpucommons_jobs{state="QUEUED"} 1.0' in metrics
    assert 'gpucommons_nodes{state="ready"} 1.0' in metrics
