/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph's style sheet and script, generated at build time by embed.py. */
#pragma once

extern const char flamegraph_css[];
extern const char flamegraph_js[];
