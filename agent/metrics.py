"""What Prometheus reads. Series of a lease vanish with the lease."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector as PrometheusCollector

from agent.collector import Collector
from agent.inventory import GpuInventory
from agent.store import Store


class _State(PrometheusCollector):
    def __init__(self, store: Store, inventory: GpuInventory, collector: Collector) -> None:
        self._store = store
        self._inventory = inventory
        self._collector = collector

    def collect(self) -> Iterable[Metric]:
        active = self._store.active()
        leases = GaugeMetricFamily(
            "gpucommons_leases",
            "Leases that hold a slice, by observed state.",
            labels=["state"],
        )
        for state, count in Tally(lease.observed.value for lease in active).items():
            leases.add_metric([state], count)
        yield leases
        healthy = GaugeMetricFamily("gpucommons_gpu_healthy", "1 in service.", labels=["gpu"])
        for gpu in self._inventory.all():
            healthy.add_metric([gpu.uuid], int(gpu.healthy))
        yield healthy
        newest = self._collector.newest()
        yield _family(
            "gpucommons_gpu_utilisation_ratio",
            "Part of the last interval in which a kernel ran.",
            "gpu",
            ((sample.uuid, sample.utilisation_percent) for sample in newest.gpus),
            lambda percent: percent / 100,
        )
        yield _family(
            "gpucommons_gpu_memory_used_mebibytes",
            "GPU memory in use.",
            "gpu",
            ((sample.uuid, sample.memory_used_mib) for sample in newest.gpus),
        )
        yield _family(
            "gpucommons_gpu_power_watts",
            "Power draw.",
            "gpu",
            ((sample.uuid, sample.power_watts) for sample in newest.gpus),
        )
        yield _family(
            "gpucommons_lease_memory_used_mebibytes",
            "GPU memory of the lease's processes.",
            "lease",
            ((sample.lease_id, sample.memory_used_mib) for sample in newest.leases),
        )


def _family(
    name: str,
    text: str,
    label: str,
    values: Iterable[tuple[str, float | None]],
    convert: Callable[[float], float] = float,
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values:
        if value is not None:
            family.add_metric([key], convert(value))
    return family


class Metrics:
    content_type = CONTENT_TYPE_LATEST

    def __init__(self, store: Store, inventory: GpuInventory, collector: Collector) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_State(store, inventory, collector))
        self._refused = Counter(
            "gpucommons_tls_handshakes_refused",
            "Connections that showed no certificate of the portal's authority.",
            registry=self._registry,
        )

    def handshake_refused(self) -> None:
        self._refused.inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)
