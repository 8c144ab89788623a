# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace


class KVCacheMetricsCollector:
    def __init__(self, sample_rate=0.01):
        self.sample_rate = sample_rate
        self._eviction_events = []

    def on_block_evicted(self, block):
        self._eviction_events.append(
            SimpleNamespace(lifetime_seconds=2.0, idle_seconds=0.5, reuse_gaps_seconds=()))

    def drain_events(self):
        events, self._eviction_events = self._eviction_events, []
        return events
