/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/row_state.h"

#include <string.h>

void row_state_clear(struct row_state *state)
{
	memset(state->previous, 0, sizeof(state->previous));
	state->stride = 0;
	state->category = 0;
	map_u64_clear(&state->layouts);
}

void row_state_done(struct row_state *state)
{
	map_u64_done(&state->layouts);
}
