/* SPDX-License-Identifier: Apache-2.0 */
/* Rails: what each took so far, and its power since the last message. */
#include <math.h>
#include <stdlib.h>

#include "live/columns.h"
#include "live/state.h"

/* Points of a rail that wait; then neighbours are merged. Of a message, of all rails. */
#define MOST_POINTS    1200
#define MESSAGE_POINTS 12000

static uint32_t text_or_none(int *r, struct live_figures *figures, const char *text)
{
	uint32_t kept = 0;

	if (*r == 0)
		*r = live_keep_text(figures, text, &kept);
	return kept;
}

int live_add_rail(struct live_figures *figures, const struct wire_energy_domain *domain)
{
	struct live_rail *rail;
	int r = 0;

	/* Ids count from 1; one that is there is sent again, better. */
	while (r == 0 && figures->rails.count < domain->id)
		r = array_append(&figures->rails, (struct live_rail){0});
	if (r < 0)
		return r;
	rail = &figures->rails.items[domain->id - 1];
	rail->name = text_or_none(&r, figures, domain->name);
	rail->source = text_or_none(&r, figures, domain->source);
	rail->device = text_or_none(&r, figures, domain->device);
	rail->parent = domain->parent;
	rail->part = domain->part;
	rail->quality = domain->quality;
	rail->is_replayed = domain->is_replayed;
	rail->period_ns = domain->period_ns;
	rail->limit_w = domain->limit_w;
	figures->session_changed = true;
	return r;
}

/* Of each four points the one with the least and the one with the most power, and their order. */
static void merge_points(struct live_rail *rail)
{
	struct live_point *points = rail->points.items;
	size_t kept = 0;

	for (size_t i = 0; i < rail->points.count; i += 4) {
		size_t end = MIN(i + 4, rail->points.count), least = i, most = i;

		for (size_t j = i + 1; j < end; j++) {
			/* A gap is neither, but where all are. */
			if (points[j].w < points[least].w || isnan(points[least].w))
				least = j;
			if (points[j].w > points[most].w || isnan(points[most].w))
				most = j;
		}
		struct live_point first = points[MIN(least, most)], last = points[MAX(least, most)];

		points[kept++] = first;
		if (least != most)
			points[kept++] = last;
	}
	rail->points.count = kept;
}

int live_add_interval(struct live_figures *figures, const struct wire_energy_interval *interval)
{
	struct live_point point = {.end_ns = interval->end_ns, .w = NAN};
	struct live_rail *rail;

	if (!interval->domain || interval->domain > figures->rails.count)
		return 0;
	rail = &figures->rails.items[interval->domain - 1];
	rail->has_intervals = true;
	if (interval->gap == WIRE_ENERGY_NO_GAP && interval->end_ns > interval->start_ns) {
		rail->energy_nj += interval->energy_nj;
		point.w = (double)interval->energy_nj /
			  (double)(interval->end_ns - interval->start_ns);
	}
	if (rail->points.count >= MOST_POINTS)
		merge_points(rail);
	return array_append(&rail->points, point);
}

/* ---- messages ---- */

static void write_rail(const struct live_figures *figures, struct json_writer *json, size_t index)
{
	const struct live_rail *rail = &figures->rails.items[index];

	json_begin_object(json);
	json_member_u64(json, "rail", index + 1);
	json_member_known(json, "parent", rail->parent != WIRE_ENERGY_NO_DOMAIN, rail->parent);
	live_member_text(figures, json, "name", rail->name);
	live_member_text(figures, json, "source", rail->source);
	live_member_text(figures, json, "device", rail->device);
	json_member_text(json, "part", wire_energy_part_name(rail->part));
	json_member_text(json, "quality", wire_energy_quality_name(rail->quality));
	json_key(json, "is_replayed");
	json_bool(json, rail->is_replayed);
	json_key(json, "period_ms");
	json_double(json, rail->period_ns ? (double)rail->period_ns / (double)NS_PER_MS : NAN, 9);
	json_key(json, "limit_w");
	json_double(json, rail->limit_w > 0 ? rail->limit_w : NAN, 9);
	json_end_object(json);
}

void live_write_rails(const struct live_figures *figures, struct json_writer *json)
{
	json_key(json, "rails");
	json_begin_array(json);
	for (size_t i = 0; i < MIN(figures->rails.count, (size_t)512); i++)
		write_rail(figures, json, i);
	json_end_array(json);
}

void live_write_joules(const struct live_figures *figures, struct json_writer *json)
{
	json_key(json, "rails");
	json_begin_array(json);
	for (size_t i = 0; i < MIN(figures->rails.count, (size_t)512); i++) {
		if (!figures->rails.items[i].has_intervals)
			continue;
		json_begin_object(json);
		json_member_u64(json, "rail", i + 1);
		json_member_double(json, "joules", (double)figures->rails.items[i].energy_nj / 1e9);
		json_end_object(json);
	}
	json_end_array(json);
}

bool live_has_power(const struct live_figures *figures)
{
	array_foreach (&figures->rails, rail) {
		if (rail->points.count)
			return true;
	}
	return false;
}

static void write_points(
	const struct live_figures *figures, struct json_writer *json, const struct live_rail *rail)
{
	json_key(json, "t_ms");
	json_begin_array(json);
	array_foreach (&rail->points, point)
		json_double(json, live_t_ms(figures, point->end_ns), 12);
	json_end_array(json);
	json_key(json, "w");
	json_begin_array(json);
	array_foreach (&rail->points, point)
		json_double(json, point->w, 6);
	json_end_array(json);
}

struct power_rows {
	struct live_power_points_row *items;
	size_t count, capacity;
};

/* Behind the rows of other rails. */
static int add_rows(const struct live_figures *figures, size_t index, struct power_rows *rows)
{
	array_foreach (&figures->rails.items[index].points, point) {
		const struct live_power_points_row row = {
			live_t_ms(figures, point->end_ns), (float)point->w, (uint32_t)index + 1};

		if (array_append(rows, row) < 0)
			return -ENOMEM;
	}
	return 0;
}

int live_write_power(struct live_figures *figures, size_t first, size_t *ret_next,
	struct json_writer *json, struct strbuf *columns)
{
	struct power_rows rows = {0};
	const struct intern no_texts = {0};
	size_t i = first;
	int r = 0;

	live_begin_message(figures, json);
	json_key(json, "rails");
	json_begin_array(json);
	for (; r == 0 && i < figures->rails.count && rows.count < MESSAGE_POINTS; i++) {
		struct live_rail *rail = &figures->rails.items[i];

		if (!rail->points.count)
			continue;
		r = add_rows(figures, i, &rows);
		json_begin_object(json);
		json_member_u64(json, "rail", i + 1);
		write_points(figures, json, rail);
		json_end_object(json);
		array_clear(&rail->points);
	}
	json_end_array(json);
	json_end_object(json);
	live_write_rows(columns, &live_power_points_table, rows.items, rows.count);
	live_write_texts(columns, &no_texts);
	array_done(&rows);
	while (i < figures->rails.count && !figures->rails.items[i].points.count)
		i++;
	*ret_next = i;
	return r;
}
