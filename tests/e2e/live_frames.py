# SPDX-License-Identifier: Apache-2.0
"""Binary frames of live messages, by x-frame of schema/api.json: to and from the envelopes that they stand for.

    decode(frame)       its envelope, as a client that takes text gets it
    encode(envelope)    None where its type has no binary frames
"""

import json
import math
import struct
from pathlib import Path

DOCUMENT = json.loads((Path(__file__).resolve().parents[2] / "schema" / "api.json").read_text())
HEADER = DOCUMENT["x-frame"]["header"]
KINDS = {about["kind"]: about for schema in DOCUMENT["components"]["schemas"].values() if "kind" in (about := schema.get("x-message", {}))}
LETTERS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f64": "d", "f32": "f", "text": "I"}
HEADER_FORMAT = "<" + "".join(f"{kind[4:]}s" if kind.startswith("char") else LETTERS[kind] for kind in HEADER.values())
NO_TEXT = 0xFFFFFFFF


def padded(data):
    return data + bytes(-len(data) % 8)


def known(value):
    return None if isinstance(value, float) and math.isnan(value) else value


def decode(frame):
    header = dict(zip(HEADER, struct.unpack_from(HEADER_FORMAT, frame)))
    assert header["version"] == 1 and header["zero"] == 0
    at, about, tables = header["bytes"], KINDS[header["kind"]], {}
    for name, columns in about["columns"].items():
        rows, zero = struct.unpack_from("<II", frame, at)
        assert zero == 0
        at += 8
        tables[name] = {}
        for column, kind in columns.items():
            values = struct.unpack_from(f"<{rows}{LETTERS[kind]}", frame, at)
            at += len(padded(bytes(rows * struct.calcsize(LETTERS[kind]))))
            tables[name][column] = [known(value) for value in values]
    texts = json.loads(frame[at:])
    for name, columns in about["columns"].items():
        for column in (column for column, kind in columns.items() if kind == "text"):
            tables[name][column] = [None if place == NO_TEXT else texts[place] for place in tables[name][column]]
    rows = {name: [dict(zip(table, row)) for row in zip(*table.values())] for name, table in tables.items()}
    text = {name: header[name].rstrip(b"\0").decode() for name in ("epoch", "capture")}
    data = {"capture": text["capture"], **({"rails": by_rail(rows["points"])} if "points" in rows else rows)}
    return {"v": 1, "epoch": text["epoch"], "seq": header["seq"], "t_ms": header["t_ms"], "type": about["type"], "data": data}


def by_rail(points):
    rails = {}
    for point in points:
        rail = rails.setdefault(point["rail"], {"rail": point["rail"], "t_ms": [], "w": []})
        rail["t_ms"].append(point["t_ms"])
        rail["w"].append(point["w"])
    return list(rails.values())


def encode(envelope):
    about = next((about for about in KINDS.values() if about["type"] == envelope["type"]), None)
    if not about:
        return None
    data = envelope["data"]
    tables = {"points": [{"rail": rail["rail"], "t_ms": t_ms, "w": w} for rail in data["rails"] for t_ms, w in zip(rail["t_ms"], rail["w"])]} if "rails" in data else data
    texts = []

    def cell(kind, value):
        if kind == "text" and value is not None:
            if value not in texts:
                texts.append(value)
            return texts.index(value)
        return value if value is not None else NO_TEXT if kind == "text" else math.nan

    header = {"version": 1, "kind": about["kind"], "bytes": struct.calcsize(HEADER_FORMAT), "zero": 0, "seq": envelope["seq"], "t_ms": envelope["t_ms"],
              "epoch": envelope["epoch"].encode(), "capture": data["capture"].encode()}
    frame = struct.pack(HEADER_FORMAT, *(header[name] for name in HEADER))
    for name, columns in about["columns"].items():
        rows = tables[name]
        frame += struct.pack("<II", len(rows), 0)
        for column, kind in columns.items():
            frame += padded(struct.pack(f"<{len(rows)}{LETTERS[kind]}", *(cell(kind, row[column]) for row in rows)))
    return frame + json.dumps(texts).encode()
