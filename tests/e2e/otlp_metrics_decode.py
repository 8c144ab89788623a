# SPDX-License-Identifier: Apache-2.0
"""Reads OTLP metrics with OpenTelemetry's own messages, in an environment that has them (`tools/venv otlp`).

otlp_metrics_decode.py FILE    prints what is in it as JSON
"""

import json
import sys

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality


def point_of(point):
    kind = point.WhichOneof("value")
    return {"value": getattr(point, kind), "kind": kind, "start": point.start_time_unix_nano, "time": point.time_unix_nano,
            "labels": {item.key: item.value.string_value for item in point.attributes}}


def metric_of(metric):
    kind = metric.WhichOneof("data")
    data = getattr(metric, kind)
    found = {"unit": metric.unit, "help": metric.description, "kind": kind, "points": [point_of(p) for p in data.data_points]}
    if kind == "sum":
        found |= {"temporality": AggregationTemporality.Name(data.aggregation_temporality), "monotonic": data.is_monotonic}
    return found


def main():
    request = ExportMetricsServiceRequest()
    request.ParseFromString(open(sys.argv[1], "rb").read())
    whole = request.ByteSize()
    request.DiscardUnknownFields()  # also those of all messages in it
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    names = [metric.name for metric in scope.metrics]
    print(json.dumps({
        "unknown": whole - request.ByteSize(),
        "resource": {item.key: item.value.string_value for item in resource.resource.attributes},
        "scope": [scope.scope.name, scope.scope.version], "names": names,
        "metrics": {metric.name: metric_of(metric) for metric in scope.metrics},
    }))


main()
