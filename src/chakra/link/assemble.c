/* SPDX-License-Identifier: Apache-2.0 */
/* The new list of nodes: those as read, by id, each with its device work behind it. */
#include "chakra/link/state.h"

/* A node as read, for sorting. */
struct host_key {
	uint64_t id;
	uint32_t index;
	uint32_t works; /* of it */
};

static int compare_keys(const void *a, const void *b)
{
	const struct host_key *left = a, *right = b;

	if (left->id != right->id)
		return left->id < right->id ? -1 : 1;
	return left->index < right->index ? -1 : 1;
}

static struct execution_text text_of(const struct trace *device, uint32_t string)
{
	const struct intern_entry *entry = &device->strings.entries.items[string];

	return (struct execution_text){entry->bytes, entry->length};
}

static void fill_collective(const struct trace *device, const struct trace_collective *from,
	struct execution_work *work)
{
	work->group_name = text_of(device, from->group_name);
	work->group_ranks = text_of(device, from->group_ranks);
	work->collective = text_of(device, from->name);
	work->dtype = text_of(device, from->dtype);
	work->in_elements = from->in_elements;
	work->out_elements = from->out_elements;
	work->group_size = from->group_size;
	work->source = from->source;
	work->destination = from->destination;
}

static void fill_work(
	const struct trace *device, const struct trace_event *event, struct execution_work *work)
{
	const struct trace_work *from = trace_work(device, event);

	*work = (struct execution_work){
		.category = text_of(device, event->category_name),
		.device = TRACE_NO_NUMBER,
		.stream = TRACE_NO_NUMBER,
		.correlation = event->correlation,
		.group_name = text_of(device, 0),
		.group_ranks = text_of(device, 0),
		.collective = text_of(device, 0),
		.dtype = text_of(device, 0),
		.in_elements = TRACE_NO_NUMBER,
		.out_elements = TRACE_NO_NUMBER,
		.group_size = TRACE_NO_NUMBER,
		.source = TRACE_NO_NUMBER,
		.destination = TRACE_NO_NUMBER,
	};
	if (!from)
		return;
	work->device = from->device;
	work->stream = from->stream;
	work->bytes = from->bytes;
	memcpy(work->grid, from->grid, sizeof(work->grid));
	memcpy(work->block, from->block, sizeof(work->block));
	work->graph = from->graph;
	work->graph_node = from->graph_node;
	if (from->collective != MODEL_NONE)
		fill_collective(device, &device->collectives.items[from->collective], work);
}

/* The new list of nodes. */
struct assembly {
	struct link *link;
	struct host_key *keys; /* by id */
	uint32_t *first_work;  /* of nodes as read, in by_host */
	uint32_t *by_host;     /* works, by node as read, then by start */
	ARRAY_OF(struct execution_node) nodes;
};

static int sort_keys(struct assembly *assembly)
{
	const struct execution_trace *host = assembly->link->host;
	size_t count = host->nodes.count;

	assembly->keys = calloc(count + 1, sizeof(*assembly->keys));
	assembly->link->new_index = calloc(count + 1, sizeof(uint32_t));
	assembly->link->host_count = count;
	assembly->first_work = calloc(count + 2, sizeof(*assembly->first_work));
	assembly->by_host = calloc(assembly->link->works.count + 1, sizeof(*assembly->by_host));
	if (!assembly->keys || !assembly->link->new_index || !assembly->first_work ||
		!assembly->by_host)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		assembly->keys[i] = (struct host_key){.id = host->nodes.items[i].id, .index = i};
	qsort(assembly->keys, count, sizeof(*assembly->keys), compare_keys);
	return 0;
}

/* Deals works to their nodes: they keep the order of their starts. */
static void deal_works(struct assembly *assembly)
{
	const struct link *link = assembly->link;
	uint32_t *first = assembly->first_work;

	array_foreach (&link->works, work)
		first[work->host + 2]++;
	for (size_t i = 2; i < link->host->nodes.count + 2; i++)
		first[i] += first[i - 1];
	for (uint32_t i = 0; i < link->works.count; i++)
		assembly->by_host[first[link->works.items[i].host + 1]++] = i;
}

/* A node of device work: what its operator has, and what the device did. */
static int add_work(struct assembly *assembly, const struct execution_node *operator_node,
	uint64_t operator_id, struct link_work *work)
{
	struct link *link = assembly->link;
	const struct trace_event *event = link_event(link, work->row);
	struct execution_node node = *operator_node;
	struct execution_work details;
	int r;

	fill_work(link->device, event, &details);
	work->node = (uint32_t)assembly->nodes.count;
	link->node_of_row[work->row] = work->node;
	node.id = work->node;
	node.parent = operator_id;
	node.name = text_of(link->device, event->name);
	node.start_ns = event->start_ns + link->base_ns;
	node.inclusive_ns = node.exclusive_ns = work->end_ns - work->start_ns;
	node.match = EXECUTION_UNMATCHED;
	node.work = (uint32_t)link->host->works.count;
	r = array_append(&link->host->works, details);
	return r ?: array_append(&assembly->nodes, node);
}

static int add_nodes(struct assembly *assembly)
{
	struct link *link = assembly->link;
	struct execution_trace *host = link->host;
	int r = array_reserve(&assembly->nodes, host->nodes.count + link->works.count);

	r = r ?: array_reserve(&host->works, link->works.count);
	for (size_t i = 0; r == 0 && i < host->nodes.count; i++) {
		uint32_t old = assembly->keys[i].index;
		const struct execution_node *node = &host->nodes.items[old];
		uint64_t id = assembly->nodes.count;

		link->new_index[old] = (uint32_t)id;
		if (link->row_of_node[old] != MODEL_NONE)
			link->node_of_row[link->row_of_node[old]] = (uint32_t)id;
		r = array_append(&assembly->nodes, *node);
		assembly->nodes.items[id].id = id;
		for (uint32_t j = assembly->first_work[old];
			r == 0 && j < assembly->first_work[old + 1]; j++)
			r = add_work(assembly, node, id, &link->works.items[assembly->by_host[j]]);
	}
	return r;
}

/* Parents of host nodes under their new ids. */
static int set_parents(struct assembly *assembly)
{
	struct link *link = assembly->link;
	const struct execution_trace *host = link->host;
	struct map_u64 missing = {0};
	uint64_t parent, next = assembly->nodes.count;
	int r = 0;

	for (size_t i = 0; r == 0 && i < host->nodes.count; i++) {
		uint32_t index = assembly->keys[i].index;
		const struct execution_node *old = &host->nodes.items[index];
		struct execution_node *node = &assembly->nodes.items[link->new_index[index]];

		if (!link->keeps_lost_ids && id_map_get(&host->index, old->fw_parent, &parent))
			node->fw_parent = link->new_index[parent];
		if (id_map_get(&host->index, old->parent, &parent)) {
			node->parent = link->new_index[parent];
			continue;
		}
		link->result->orphans += old->parent != EXECUTION_NO_ID;
		node->parent = EXECUTION_NO_ID;
		if (!link->keeps_lost_ids || old->parent == EXECUTION_NO_ID)
			continue;
		if (!map_u64_get(&missing, old->parent, &node->parent)) {
			node->parent = next++;
			r = map_u64_set(&missing, old->parent, node->parent);
		}
	}
	map_u64_done(&missing);
	return r;
}

static int assemble(struct assembly *assembly)
{
	struct execution_trace *host = assembly->link->host;
	int r = sort_keys(assembly);

	if (r < 0)
		return r;
	deal_works(assembly);
	r = add_nodes(assembly);
	r = r ?: set_parents(assembly);
	if (r < 0)
		return r;
	free(host->nodes.items);
	host->nodes.items = TAKE_PTR(assembly->nodes.items);
	host->nodes.count = assembly->nodes.count;
	host->nodes.capacity = assembly->nodes.capacity;
	return execution_trace_index(host);
}

int link_assemble(struct link *link)
{
	struct assembly assembly = {.link = link};
	int r = assemble(&assembly);

	free(assembly.keys);
	free(assembly.first_work);
	free(assembly.by_host);
	array_done(&assembly.nodes);
	return r;
}
