# SPDX-License-Identifier: Apache-2.0
"""What a recording's report says of devices, for the tests of every runtime."""


def record_device(sonde, capture, *arguments, env=None):
    """Records into `capture` -> the report's device part with its kernels, the whole report, the recording's end"""
    done = sonde("record", "-o", capture, *arguments, env=env)
    data = sonde("report", "--json", capture, check=0).json()
    part = data["device_work"]
    if part:
        part["kernels"] = data["kernel"]["kernels"] if part["count"] else []
    return part, data, done


def counts(part):
    return {row["name"]: row["count"] for row in part["kernels"]}
