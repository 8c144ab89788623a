/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many processors this process may use; at least 1. */
unsigned usable_processors(void);
