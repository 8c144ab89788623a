/* SPDX-License-Identifier: Apache-2.0 */
/* The order of things: which operator is which row, when it ran, what it launched. */
#include "chakra/link/link.h"

#include "chakra/link/state.h"

#define THREAD_GAP_NS ((int64_t)1000000)

bool link_is_process_or_thread(const struct execution_node *node)
{
	static const char begin[] = "[pytorch|profiler|execution_";

	return node->name.length >= strlen(begin) &&
	       memcmp(node->name.bytes, begin, strlen(begin)) == 0;
}

bool link_names_agree(const struct link *link, const struct execution_node *node, uint32_t row)
{
	const struct intern_entry *name =
		&link->device->strings.entries.items[link_event(link, row)->name];
	bool agree = true, is_printed = true;
	uint32_t at = 0;

	if (name->length == node->name.length &&
		memcmp(name->bytes, node->name.bytes, name->length) == 0)
		return true;
	/* Kineto leaves out newlines, turns backslashes, and has one name for all others. */
	for (uint32_t i = 0; i < node->name.length; i++) {
		char character = node->name.bytes[i];

		if (character == '\n')
			continue;
		is_printed &= character >= 0x20 && character < 0x7f;
		character = character == '\\' ? '/' : character;
		agree = agree && at < name->length && name->bytes[at++] == character;
	}
	return is_printed ? agree && at == name->length : strcmp(name->bytes, "unknown") == 0;
}

void link_match(struct link *link, uint32_t node, uint32_t row, enum execution_match match)
{
	link->row_of_node[node] = row;
	link->node_of_row[row] = node;
	link->host->nodes.items[node].match = (uint8_t)match;
	link->result->matched[match]++;
}

static uint32_t *new_rows(size_t count)
{
	uint32_t *rows = malloc((count + 1) * sizeof(*rows));

	if (rows)
		memset(rows, 0xff, (count + 1) * sizeof(*rows));
	return rows;
}

/* The innermost operator around each row: calls enclose rows, too. */
static int find_operators(struct link *link)
{
	const struct trace *device = link->device;
	const uint32_t *parents = trace_parents(device, false);
	size_t size = (device->events.count + 1) * sizeof(*link->operators);

	link->operators = malloc(size);
	if (!parents || !link->operators)
		return -ENOMEM;
	memcpy(link->operators, parents, size);
	/* What encloses a row comes before it, and is done. */
	array_foreach (&device->rows, row) {
		uint32_t parent = link->operators[*row];

		if (parent != MODEL_NONE && !link_is_operator(link_event(link, parent)))
			link->operators[*row] = link->operators[parent];
	}
	return 0;
}

static int link_init(struct link *link)
{
	const struct execution_trace *host = link->host;

	if (host->nodes.count >= UINT32_MAX || link->device->events.count >= UINT32_MAX)
		return -EFBIG;
	link->row_of_node = new_rows(host->nodes.count);
	link->node_of_row = new_rows(link->device->events.count);
	if (!link->row_of_node || !link->node_of_row)
		return -ENOMEM;
	array_foreach (&host->nodes, node)
		link->result->host_nodes += !link_is_process_or_thread(node);
	return find_operators(link);
}

static void link_done(struct link *link)
{
	free(link->row_of_node);
	free(link->node_of_row);
	free(link->operators);
	free(link->new_index);
	array_done(&link->works);
}

uint64_t link_matched_count(const struct link *link)
{
	uint64_t count = 0;

	for (unsigned match = EXECUTION_UNMATCHED + 1; match < EXECUTION_MATCH_MAX; match++)
		count += link->result->matched[match];
	return count;
}

static int match_nodes(struct link *link, struct errmsg *err)
{
	int r = link_check_process(link, err);

	r = r ?: link_match_by_rf_id(link);
	r = r ?: link_check_ids(link, err);
	if (r == 0 && !link_matched_count(link))
		r = link_match_by_offset(link);
	if (r == 0 && !link_matched_count(link))
		r = link_match_by_tree(link);
	return r ?: link_check_matched(link, err);
}

/* The time of an operator that is in no other one inside of it. */
static int set_times(struct link *link)
{
	const struct trace *device = link->device;
	/* Of each row: inner time, and how far inner operators reach. */
	_cleanup_free_ int64_t *inner_ns = calloc(device->events.count + 1, sizeof(*inner_ns));
	_cleanup_free_ int64_t *reach_ns = malloc((device->events.count + 1) * sizeof(*reach_ns));

	if (!inner_ns || !reach_ns)
		return -ENOMEM;
	array_foreach (&device->rows, row) {
		const struct trace_event *event = link_event(link, *row);
		uint32_t outer = link->operators[*row];
		int64_t end_ns = trace_end_ns(event);

		reach_ns[*row] = event->start_ns;
		if (!link_is_operator(event) || outer == MODEL_NONE || end_ns <= reach_ns[outer])
			continue;
		inner_ns[outer] += end_ns - MAX(event->start_ns, reach_ns[outer]);
		reach_ns[outer] = end_ns;
	}
	for (size_t i = 0; i < link->host->nodes.count; i++) {
		struct execution_node *node = &link->host->nodes.items[i];
		const struct trace_event *event;

		if (link->row_of_node[i] == MODEL_NONE)
			continue;
		event = link_event(link, link->row_of_node[i]);
		node->start_ns = event->start_ns + link->base_ns;
		node->inclusive_ns = event->duration_ns;
		node->exclusive_ns = event->duration_ns - inner_ns[link->row_of_node[i]];
	}
	return 0;
}

/* When nodes are matched. */
static int link_attached(struct link *link)
{
	int r = set_times(link);

	r = r ?: link_attach(link);
	r = r ?: link_assemble(link);
	r = r ?: link_thread_deps(link);
	return r ?: link_device_deps(link);
}

static int link_all(struct link *link, struct errmsg *err)
{
	int r = link_init(link);

	if (r == 0 && link->options.definition)
		return link->options.definition(link, err);
	r = r ?: match_nodes(link, err);
	return r ?: link_attached(link);
}

int chakra_link(struct execution_trace *host, const struct trace *device,
	const struct chakra_link_options *options, struct chakra_link_result *ret_result,
	struct errmsg *err)
{
	struct link link = {
		.host = host,
		.device = device,
		.result = ret_result,
		.base_ns = (int64_t)device->base_ns,
	};
	struct errmsg why = {{0}};
	int r;

	memset(ret_result, 0, sizeof(*ret_result));
	if (options)
		link.options = *options;
	if (!link.options.thread_gap_ns)
		link.options.thread_gap_ns = THREAD_GAP_NS;
	if (host->works.count)
		return errmsg_set(err, -EINVAL,
			"%s is linked already: name the file that the ExecutionTraceObserver wrote",
			host->path);
	r = link_all(&link, &why);
	link_done(&link);
	if (r == 0) {
		host->schema = execution_trace_schema(host);
		ret_result->matched[EXECUTION_UNMATCHED] =
			ret_result->host_nodes -
			MIN(ret_result->host_nodes, link_matched_count(&link));
	}
	if (r < 0 && why.text[0])
		return errmsg_set(err, r, "%s", why.text);
	if (r < 0)
		return errmsg_set(err, r, "cannot link %s and %s: %s", host->path, device->path,
			strerror(-r));
	return 0;
}

int chakra_link_rows(struct execution_trace *host, const struct trace *device, const uint32_t *rows,
	struct chakra_link_result *ret_result)
{
	struct link link = {
		.host = host,
		.device = device,
		.options = {.thread_gap_ns = THREAD_GAP_NS},
		.result = ret_result,
		.base_ns = (int64_t)device->base_ns,
	};
	int r;

	memset(ret_result, 0, sizeof(*ret_result));
	r = link_init(&link);
	for (uint32_t i = 0; r == 0 && i < host->nodes.count; i++) {
		if (rows[i] != MODEL_NONE)
			link_match(&link, i, rows[i], EXECUTION_BY_TREE);
	}
	r = r ?: link_attached(&link);
	link_done(&link);
	return r;
}
