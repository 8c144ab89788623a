/* SPDX-License-Identifier: Apache-2.0 */
#include "load/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/file.h"
#include "base/macros.h"

#define QUIET_FOR_NS NS_PER_S
#define REDRAW_NS    (100 * NS_PER_MS)
#define BAR_COLUMNS  24

static struct {
	void (*function)(void *context, uint64_t done, uint64_t total);
	void *context;
} observer;

void progress_observe(void (*function)(void *context, uint64_t done, uint64_t total), void *context)
{
	observer.function = function;
	observer.context = context;
}

void progress_begin(struct progress *progress, const char *what)
{
	const char *terminal = getenv("TERM");

	*progress = (struct progress){
		.what = what,
		.started_ns = monotonic_now_ns(),
		.wanted = isatty(STDERR_FILENO) && (!terminal || strcmp(terminal, "dumb") != 0),
	};
}

static void draw(const struct progress *progress, double share)
{
	_cleanup_strbuf_ struct strbuf line = {0};
	int filled = (int)(share * BAR_COLUMNS + 0.5);

	strbuf_add(&line, "\r\033[K");
	escape_plain(&line, progress->what);
	strbuf_add(&line, "  ");
	for (int i = 0; i < BAR_COLUMNS; i++)
		strbuf_add(&line, i < filled ? "\xe2\x96\x88" : "\xe2\x96\x91");
	strbuf_addf(&line, " %3.0f %%", 100 * share);
	fputs(strbuf_cstr(&line), stderr);
	fflush(stderr);
}

void progress_update(void *context, uint64_t done, uint64_t total)
{
	struct progress *progress = context;
	uint64_t now;

	if ((!progress->wanted && !observer.function) || !total)
		return;
	now = monotonic_now_ns();
	if (observer.function && now - progress->observed_ns >= REDRAW_NS) {
		progress->observed_ns = now;
		observer.function(observer.context, done, total);
	}
	if (!progress->wanted)
		return;
	if (now - progress->started_ns < QUIET_FOR_NS || now - progress->drawn_ns < REDRAW_NS)
		return;
	progress->drawn_ns = now;
	progress->shown = true;
	draw(progress, (double)MIN(done, total) / (double)total);
}

void progress_end(struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}
