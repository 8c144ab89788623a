#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes C and TypeScript of api.json, the one description of the server's HTTP and WebSocket interface.

    api.py c api.json OUTPUT.c OUTPUT.h    routes, parameters with their bounds, errors, messages, and the document itself
    api.py rows api.json OUTPUT.c OUTPUT.h the rows of binary messages, for who makes them (src/live)
    api.py typescript api.json             web/src/api.ts, on standard output
"""

import json
import sys

C_TYPES = {"string": "const char *", "integer": "uint64_t ", "number": "double ", "boolean": "bool ", "object": "struct json_text ",
           "array": "struct api_texts "}
TABLE_TYPES = {"string": "API_TEXT", "integer": "API_INTEGER", "number": "API_NUMBER", "boolean": "API_FLAG", "object": "API_OBJECT",
               "array": "API_TEXTS"}
BODY_BYTES = 65536  # of bodies without x-body-bytes
# Of binary frames; numbers of a char are its bytes.
FRAME_TYPES = {"u8": ("uint8_t", 1), "u16": ("uint16_t", 2), "u32": ("uint32_t", 4), "u64": ("uint64_t", 8), "f64": ("double", 8)}
COLUMN_TYPES = {"f64": "double", "f32": "float", "u32": "uint32_t", "text": "uint32_t"}


def c_name(name):
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def resolve(document, thing):
    """What a $ref points to, or the thing itself."""
    while "$ref" in thing:
        target = document
        for word in thing["$ref"].removeprefix("#/").split("/"):
            target = target[word]
        thing = target
    return thing


def operations(document):
    """(method, path, operation, parameters) of each. Members of a JSON body are parameters, too, "in" the body."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            parameters = [resolve(document, parameter) for parameter in operation.get("parameters", [])]
            yield method.upper(), path, operation, parameters + body_members(document, operation)


def body_of(document, operation):
    """(type, schema) of the request's body; None: it has none."""
    if "requestBody" not in operation:
        return None
    (content_type, media), = resolve(document, operation["requestBody"])["content"].items()
    return content_type, resolve(document, media["schema"])


def body_members(document, operation):
    content_type, schema = body_of(document, operation) or (None, None)
    if content_type != "application/json" or "properties" not in schema:
        return []
    return [{"name": name, "in": "body", "required": name in schema.get("required", []), "schema": resolve(document, part)}
            for name, part in schema["properties"].items()]


def messages(document):
    for name, schema in document["components"]["schemas"].items():
        if "x-message" in schema:
            yield name, schema


def is_flat(schema):
    """C writes it from a struct; other messages are written by who publishes them."""
    return all("type" in part and message_kind(part)[0] in ("string", "integer", "boolean") for part in schema["properties"].values())


def flat_messages(document):
    return [schema for _, schema in messages(document) if is_flat(schema)]


def frame_header(document):
    """(name, type, its offset, bytes) of each field."""
    offset = 0
    for name, kind in document["x-frame"]["header"].items():
        size = int(kind.removeprefix("char")) if kind.startswith("char") else FRAME_TYPES[kind][1]
        yield name, kind, offset, size
        offset += size


def binary_messages(document):
    for _, schema in messages(document):
        if "columns" in schema["x-message"]:
            yield schema["x-message"]


def quoted(text):
    return json.dumps(text, ensure_ascii=True)


# ---- C ----


def field(parameter):
    name, schema = c_name(parameter["name"]), parameter["schema"]
    kind = f"enum api_{name} " if "enum" in schema else C_TYPES[schema["type"]]
    has = "" if parameter.get("required") or "default" in schema else f"\tbool has_{name};\n"
    return f"{has}\t{kind}{name};\n"


def enums(document):
    seen = {}
    for *_, parameters in operations(document):
        for parameter in parameters:
            if "enum" in parameter["schema"]:
                seen[c_name(parameter["name"])] = parameter["schema"]["enum"]
    for name, words in seen.items():
        members = "".join(f"\tAPI_{name.upper()}_{c_name(word).upper()},\n" for word in words)
        yield name, words, f"enum api_{name} {{\n{members}}};\n"


def error_codes(document):
    return document["components"]["schemas"]["Failure"]["properties"]["error"]["properties"]["code"]["enum"]


def message_kind(schema):
    """(type, may it be null) of a member of a message."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return next(kind for kind in kinds if kind != "null"), "null" in kinds


def message_field(key, schema):
    kind, is_nullable = message_kind(schema)
    has = f"\tbool has_{c_name(key)};\n" if is_nullable and kind != "string" else ""
    return f"{has}\t{C_TYPES[kind]}{c_name(key)};\n"


def header(document):
    lines = ["/* Generated from api.json. */\n#pragma once\n\n#include <stdbool.h>\n#include <stdint.h>\n\n#include \"base/json_reader.h\"\n\nstruct json_writer;\n"]
    names = [f"\tAPI_{operation['operationId'].upper()},\n" for _, _, operation, _ in operations(document)]
    lines.append(f"enum api_operation {{\n{''.join(names)}\tAPI_OPERATION_MAX,\n}};\n")
    codes = [f"\tAPI_ERROR_{c_name(code).upper()},\n" for code in error_codes(document)]
    lines.append(f"enum api_error {{\n{''.join(codes)}\tAPI_ERROR_MAX,\n}};\n")
    lines += [text for _, _, text in enums(document)]
    for _, _, operation, parameters in operations(document):
        if parameters:
            fields = "".join(map(field, parameters))
            lines.append(f"struct api_{operation['operationId']}_parameters {{\n{fields}}};\n")
    kinds = [f"\tAPI_MESSAGE_{schema['x-message']['type'].upper()},\n" for _, schema in messages(document)]
    lines.append(f"enum api_message {{\n{''.join(kinds)}\tAPI_MESSAGE_MAX,\n}};\n")
    for schema in flat_messages(document):
        name = schema["x-message"]["type"]
        fields = "".join(message_field(key, part) for key, part in schema["properties"].items())
        lines.append(f"struct api_{name}_message {{\n{fields}}};\n\n"
                     f"void api_write_{name}(struct json_writer *json, const struct api_{name}_message *message);\n")
    return "\n".join([*lines, frame_struct(document)])


def frame_struct(document):
    fields, end = "", 0
    for name, kind, offset, size in frame_header(document):
        fields += f"\tchar {name}[{size}];\n" if kind.startswith("char") else f"\t{FRAME_TYPES[kind][0]} {name};\n"
        end = offset + size
    return f"struct api_frame_header {{\n{fields}}};\n_Static_assert(sizeof(struct api_frame_header) == {end}, \"without padding\");\n"


def rows_header(document):
    lines = ["/* Generated from api.json. */\n#pragma once\n\n#include <stdint.h>\n"]
    for about in binary_messages(document):
        for table, columns in about["columns"].items():
            name = f"{about['type']}_{table}"
            fields = "".join(f"\t{COLUMN_TYPES[kind]} {key};\n" for key, kind in columns.items())
            lines.append(f"struct {name}_row {{\n{fields}}};\n\nextern const struct live_table {name}_table;\n")
    return "\n".join(lines)


def rows_source(document):
    lines = ['/* Generated from api.json. */\n#include "live/columns.h"\n\n#include <stddef.h>\n']
    for about in binary_messages(document):
        for table, columns in about["columns"].items():
            name = f"{about['type']}_{table}"
            entries = "".join(f"\t\t{{offsetof(struct {name}_row, {key}), sizeof({COLUMN_TYPES[kind]})}},\n" for key, kind in columns.items())
            lines.append(f"const struct live_table {name}_table = {{\n\t.row_bytes = sizeof(struct {name}_row),\n"
                         f"\t.columns = {{\n{entries}\t\t{{0, 0}},\n\t}},\n}};\n")
    return "\n".join(lines)


def table_entry(operation, parameter):
    schema, name = parameter["schema"], c_name(parameter["name"])
    place = f"struct api_{operation}_parameters"
    entry = [f".name = {quoted(parameter['name'])}", f".offset = offsetof({place}, {name})"]
    if parameter["in"] == "path":
        entry.append(".is_in_path = true")
    elif parameter.get("required"):
        entry.append(".is_required = true")
    if parameter["in"] == "body":
        entry.append(".is_in_body = true")
    if not parameter.get("required") and "default" not in schema:
        entry.append(f".has_offset = offsetof({place}, has_{name})")
    else:
        entry.append(".has_offset = API_NO_HAS")
    if "enum" in schema:
        entry += [".type = API_CHOICE", f".choices = {name}_choices"]
        entry += [f".initial = {schema['enum'].index(schema['default'])}"] if "default" in schema else []
    else:
        entry.append(f".type = {TABLE_TYPES[schema['type']]}")
        entry += [f".initial = {float(schema['default'])}"] if "default" in schema else []
    if schema["type"] == "array":
        entry += [f".least = {schema.get('minItems', 0)}", f".most = {schema['maxItems']}"]
        schema = schema["items"]
    if schema["type"] == "string" and "enum" not in schema:
        entry += [f".minimum = {schema.get('minLength', 0)}", f".maximum = {schema['maxLength']}"]
        entry += [".is_id = true"] if "pattern" in schema else []
    elif "maximum" in schema:
        entry += [f".minimum = {schema['minimum']}", f".maximum = {schema['maximum']}"]
    return "\t{" + ", ".join(entry) + "},\n"


def body_entry(document, operation):
    body = body_of(document, operation)
    return f", {quoted(body[0])}, {operation.get('x-body-bytes', BODY_BYTES)}" if body else ""


def embedded(document):
    """The document in pieces that every compiler takes."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    data = text.encode()
    rows = [", ".join(str(byte) for byte in data[start:start + 32]) for start in range(0, len(data), 32)]
    return ("const unsigned char api_document[] = {\n\t" + ",\n\t".join(rows) + "};\n"
            "const size_t api_document_length = sizeof(api_document);\n")


def source(document):
    lines = ['/* Generated from api.json. */\n#include "server/api.h"\n\n#include <stddef.h>\n\n#include "base/json.h"\n']
    for name, words, _ in enums(document):
        lines.append(f"static const char *const {name}_choices[] = {{{', '.join(map(quoted, words))}, NULL}};\n")
    rows = []
    for method, path, operation, parameters in operations(document):
        name = operation["operationId"]
        if parameters:
            entries = "".join(table_entry(name, parameter) for parameter in parameters)
            lines.append(f"static const struct api_parameter {name}_parameters[] = {{\n{entries}\t{{0}},\n}};\n"
                         f"_Static_assert(sizeof(struct api_{name}_parameters) <= API_PARAMETERS_BYTES, \"raise it\");\n")
        listed = f"{name}_parameters" if parameters else "NULL"
        rows.append(f"\t[API_{name.upper()}] = {{{quoted(method)}, {quoted(path)}, {quoted(name)}, {listed}{body_entry(document, operation)}}},\n")
    lines.append(f"const struct api_route api_routes[API_OPERATION_MAX] = {{\n{''.join(rows)}}};\n")
    codes = "".join(f"\t{quoted(code)},\n" for code in error_codes(document))
    lines.append(f"const char *const api_error_codes[API_ERROR_MAX] = {{\n{codes}}};\n")
    kinds = ""
    for _, schema in messages(document):
        about = schema["x-message"]
        kinds += (f"\t[API_MESSAGE_{about['type'].upper()}] = {{{quoted(about['type'])}, "
                  f"API_CLASS_{c_name(about['class']).upper()}, {about.get('kind', 0)}}},\n")
    lines.append(f"const struct api_message_kind api_message_kinds[API_MESSAGE_MAX] = {{\n{kinds}}};\n")
    lines += [writer(schema) for schema in flat_messages(document)]
    lines.append(embedded(document))
    return "\n".join(lines)


def writer(schema):
    name, body = schema["x-message"]["type"], ""
    for key, part in schema["properties"].items():
        (kind, is_nullable), value = message_kind(part), f"message->{c_name(key)}"
        call = {"string": f"json_member_text(json, {quoted(key)}, {value});",
                "integer": f"json_member_u64(json, {quoted(key)}, {value});",
                "number": f"json_member_double(json, {quoted(key)}, {value});",
                "boolean": f"json_key(json, {quoted(key)});\n\tjson_bool(json, {value});"}[kind]
        if is_nullable and kind == "integer":
            call = f"json_member_known(json, {quoted(key)}, message->has_{c_name(key)}, {value});"
        body += f"\t{call}\n"
    return (f"void api_write_{name}(struct json_writer *json, const struct api_{name}_message *message)\n"
            f"{{\n\tjson_begin_object(json);\n{body}\tjson_end_object(json);\n}}\n")


# ---- TypeScript ----


def typescript_type(schema):
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[-1]
    if "enum" in schema:
        return " | ".join(map(quoted, schema["enum"]))
    if "const" in schema:
        return json.dumps(schema["const"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(typescript_type({**schema, "type": one}) for one in kind)
    if kind == "array":
        inner = typescript_type(schema["items"])
        return f"({inner})[]" if " " in inner else f"{inner}[]"
    if kind == "object" and "properties" in schema:
        return "{ " + " ".join(f"{member}" for member in typescript_members(schema)) + " }"
    names = {"integer": "number", "object": "Record<string, unknown>"}
    return names.get(kind, kind or "unknown")


def typescript_members(schema):
    for key, part in schema["properties"].items():
        optional = "" if key in schema.get("required", []) else "?"
        yield f"{key if key.isidentifier() else quoted(key)}{optional}: {typescript_type(part)};"


def answer_type(operation):
    content = next(operation["responses"][code] for code in ("200", "201", "202") if code in operation["responses"])["content"]
    return typescript_type(content["application/json"]["schema"]) if "application/json" in content else "Blob"


def body_type(document, operation):
    body = body_of(document, operation)
    if not body:
        return ""
    return f" body: {typescript_type(body[1]) if body[0] == 'application/json' else 'Blob'};"


def typescript(document):
    lines = ["// SPDX-License-Identifier: Apache-2.0",
             "// Made of schema/api.json: schema/api.py typescript schema/api.json >web/src/api.ts", ""]
    for name, schema in document["components"]["schemas"].items():
        if "description" in schema:
            lines.append(f"// {schema['description']}")
        lines.append(f"export interface {name} {{")
        lines += [f"  {member}" for member in typescript_members(schema)] + ["}", ""]
    lines.append("// Of each operation: its method and path, parameters and answer.\nexport interface Operations {")
    for method, path, operation, parameters in operations(document):
        schema = {"properties": {p["name"]: p["schema"] for p in parameters if p["in"] != "body"},
                  "required": [p["name"] for p in parameters if p.get("required")]}
        members = " ".join(typescript_members(schema))
        lines.append(f"  // {method} {path}: {operation['summary']}\n  {operation['operationId']}: {{ "
                     f"parameters: {{ {members} }};{body_type(document, operation)} answer: {answer_type(operation)} }};".replace("{  }", "{}"))
    lines += ["}", "", "export const paths: Record<keyof Operations, string> = {"]
    lines += [f"  {operation['operationId']}: {quoted(path)}," for _, path, operation, _ in operations(document)]
    lines += ["};", "", "// Those that are not asked for with GET.", "export const methods: Partial<Record<keyof Operations, string>> = {"]
    lines += [f"  {operation['operationId']}: {quoted(method)}," for method, _, operation, _ in operations(document) if method != "GET"]
    lines += ["};", "", "// Of each type of message, its data.", "export interface Messages {"]
    lines += [f"  {schema['x-message']['type']}: {name};" for name, schema in messages(document)] + ["}", ""]
    lines += [f"// {document['x-frame']['description']}", "export const frameHeader = {"]
    lines += [f"  {name}: {{ type: {quoted(kind)}, at: {offset}, bytes: {size} }}," for name, kind, offset, size in frame_header(document)]
    lines += ["} as const;", "", "// Of each kind of binary frame, its tables.", "export const frameKinds = {"]
    for about in binary_messages(document):
        lines += [f"  {about['type']}: {{", f"    kind: {about['kind']},", "    tables: {"]
        for table, columns in about["columns"].items():
            members = ", ".join(f"{name}: {quoted(kind)}" for name, kind in columns.items())
            lines.append(f"      {table}: {{ {members} }},")
        lines += ["    },", "  },"]
    lines += ["} as const;"]
    return "\n".join(lines)


def main():
    language, path, *outputs = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if language == "typescript":
        print(typescript(document))
        return
    makers = {"c": (source, header), "rows": (rows_source, rows_header)}[language]
    for output, text in zip(outputs, (make(document) for make in makers)):
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
