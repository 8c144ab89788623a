# SPDX-License-Identifier: Apache-2.0
"""A log as astra-sim writes it: nodes of a Chakra trace run when what they wait for has ended, at most one at a time on the
host, on the device and in the network, each as long as `ticks` says."""

import heapq
import json

TYPES = {"METADATA_NODE": 1, "MEM_LOAD_NODE": 2, "MEM_STORE_NODE": 3, "COMP_NODE": 4,
         "COMM_SEND_NODE": 5, "COMM_RECV_NODE": 6, "COMM_COLL_NODE": 7}
PREFIX = "[2026-03-07 11:55:08.693] [workload] [debug] "


def read_nodes(dump):
    """Of what `sonde chakra dump` prints."""
    return [json.loads(line) for line in dump.splitlines()[1:]]


def is_host(node):
    return any(each["name"] == "is_cpu_op" and each.get("boolVal") for each in node["attr"])


def node_line(what, system, tick, node):
    return (f"{PREFIX}{what},sys->id={system}, tick={tick}, node->id={node.get('id', 0)}, node->name={node['name']}, "
            f"node->type={TYPES[node['type']]}")


def simulate(nodes, system=0, ticks=lambda node: 1000 * int(node.get("durationMicros", 0))):
    nodes = {node.get("id", "0"): node for node in nodes}
    waits = {key: len({*node.get("ctrlDeps", []), *node.get("dataDeps", [])} & set(nodes)) for key, node in nodes.items()}
    after = {}
    for key, node in nodes.items():
        for dep in {*node.get("ctrlDeps", []), *node.get("dataDeps", [])} & set(nodes):
            after.setdefault(dep, []).append(key)
    ready = sorted((key for key in nodes if not waits[key]), key=int)
    running, busy, now, lines = [], set(), 0, []
    while ready or running:
        for key in list(ready):
            node = nodes[key]
            place = "host" if is_host(node) else node["type"][:4]
            if place in busy:
                continue
            ready.remove(key)
            busy.add(place)
            lines.append(node_line("issue", system, now, node))
            heapq.heappush(running, (now + ticks(node), int(key), place))
        now, key, place = heapq.heappop(running)
        busy.remove(place)
        lines.append(node_line("callback", system, now, nodes[str(key)]))
        for each in after.get(str(key), []):
            waits[each] -= 1
            if not waits[each]:
                ready.append(each)
    lines.append(f"[2026-03-07 11:55:09.001] [workload] [info] sys[{system}] finished, {now} cycles, exposed communication 0 cycles.")
    return lines
