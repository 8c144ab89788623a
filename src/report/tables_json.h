/* SPDX-License-Identifier: Apache-2.0 */
/* Members of JSON, for what is not data yet. */
#pragma once

#include "analyses/cpu/breakdown.h"
#include "analyses/device/communication.h"
#include "base/json.h"

/* Key and string, or null for NULL and "". */
void json_member_text(struct json_writer *json, const char *key, const char *text);
void json_member_u64(struct json_writer *json, const char *key, uint64_t value);
/* `known` false gives null. */
void json_member_known(struct json_writer *json, const char *key, bool known, uint64_t value);
void json_member_double(struct json_writer *json, const char *key, double value);
/* What a range or mark carries, under its own name. */
void json_member_range_field(struct json_writer *json, const struct model_range_field *field);
