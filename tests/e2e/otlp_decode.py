# SPDX-License-Identifier: Apache-2.0
"""Reads OTLP profiles with OpenTelemetry's own messages, in an environment that has them (`tools/venv otlp`).

otlp_decode.py FILE    prints what is in it as JSON: every stack with its names, values and attributes
"""

import json
import sys

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest


def attribute(item):
    return item.string_value if item.HasField("string_value") else item.int_value


def main():
    request = ExportProfilesServiceRequest()
    request.ParseFromString(open(sys.argv[1], "rb").read())
    tables = request.dictionary
    strings = tables.string_table
    whole = request.ByteSize()
    request.DiscardUnknownFields()  # also those of all messages in it
    unknown = whole - request.ByteSize()
    # The first item of each table stands for "none".
    first = [strings[0], *(getattr(tables, name)[0].ByteSize() for name in (
        "mapping_table", "location_table", "function_table", "link_table", "attribute_table", "stack_table"))]

    def name(index):
        location = tables.location_table[index]
        types = {strings[tables.attribute_table[i].key_strindex]: attribute(tables.attribute_table[i].value)
                 for i in location.attribute_indices}
        mapping = tables.mapping_table[location.mapping_index]
        return {"functions": [strings[tables.function_table[line.function_index].name_strindex] for line in location.lines],
                "lines": [line.line for line in location.lines], "type": types.get("profile.frame.type"),
                "file": strings[mapping.filename_strindex],
                "build_id": [attribute(tables.attribute_table[i].value) for i in mapping.attribute_indices]}

    profiles = []
    for resource in request.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                profiles.append({
                    "type": [strings[profile.sample_type.type_strindex], strings[profile.sample_type.unit_strindex]],
                    "time": profile.time_unix_nano, "duration": profile.duration_nano, "period": profile.period,
                    "id": profile.profile_id.hex(),
                    "samples": [{
                        "stack": [name(i) for i in tables.stack_table[sample.stack_index].location_indices],
                        "values": list(sample.values),
                        "attributes": {strings[tables.attribute_table[i].key_strindex]: attribute(tables.attribute_table[i].value)
                                       for i in sample.attribute_indices},
                    } for sample in profile.samples],
                })
        resources = {item.key: attribute(item.value) for item in resource.resource.attributes}
    print(json.dumps({"first": first, "unknown": unknown, "profiles": profiles, "resource": resources,
                      "scope": [scope.scope.name, scope.scope.version]}))


main()
