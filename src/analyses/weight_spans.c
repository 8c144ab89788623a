/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/weight_spans.h"

void weight_spans_done(struct weight_spans *spans)
{
	array_done(&spans->items);
}
