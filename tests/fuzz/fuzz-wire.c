/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as wire records, through the whole pipeline: checked, ordered, unwound where they carry
 * a stack, resolved and written. The input is records behind one another, each after its length in
 * two bytes. They are of a made-up process that has this program, the vDSO and generated code
 * mapped. Those with `reserved` set come from its ring, as the injected library writes them.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/device/launch_records.h"
#include "collect/pipeline/pipeline.h"
#include "target.h"

#define PID             0x7fffff00U /* beyond every pid_max: /proc has nothing of it */
#define PROGRAM_ADDRESS 0x10000000ULL
#define VDSO_ADDRESS    0x20000000ULL
#define CODE_ADDRESS    0x30000000ULL
#define INPUTS_A_WORLD  2048 /* what is interned grows: begin again now and then */

struct world {
	struct file_store *files;
	struct address_spaces *spaces;
	struct capture_writer *writer;
	struct resolver *resolver;
	struct python_registry *python;
	struct pipeline *pipeline;
	struct launch_records *records;
	unsigned inputs;
};

static void check(bool is_right)
{
	if (!is_right)
		abort();
}

static void on_file_added(void *context, const struct mapped_file *file)
{
	struct world *world = context;

	check(file_store_add(world->files, file) == 0);
}

static void map(struct world *world, const char *path, uint64_t address, uint64_t length)
{
	static uint64_t time_ns = 1000;
	struct stat status = {0};
	struct sideband_event event = {.type = SIDEBAND_MMAP,
		.time_ns = time_ns++,
		.pid = PID,
		.tid = PID,
		.name = path,
		.address = address,
		.length = length};

	if (path[0] == '/' && stat(path, &status) == 0) {
		event.device = status.st_dev;
		event.inode = status.st_ino;
	}
	check(pipeline_add_event(world->pipeline, &event) == 0);
}

/* The program's segments are mapped as one, from the start of the file. */
static void fill_address_space(struct world *world)
{
	struct sideband_event fork = {
		.type = SIDEBAND_FORK, .time_ns = 1, .pid = PID, .tid = PID, .parent_pid = PID - 1};
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	check(length > 0);
	path[length] = '\0';
	check(address_spaces_apply(world->spaces, &fork, false) == 0);
	map(world, path, PROGRAM_ADDRESS, 1 << 20);
	map(world, "[vdso]", VDSO_ADDRESS, 8192);
	map(world, "//anon", CODE_ADDRESS, 1 << 20);
	check(pipeline_process(world->pipeline, UINT64_MAX) == 0);
}

static void wait_for_tables(struct world *world)
{
	struct pollfd ready = {.fd = file_store_descriptor(world->files), .events = POLLIN};

	for (uint32_t file = 0; address_spaces_file(world->spaces, file); file++) {
		const struct symbol_table *symbols;

		while (file_store_symbols(world->files, file, &symbols) == FILE_PENDING) {
			poll(&ready, 1, 100);
			file_store_acknowledge(world->files);
		}
	}
}

static void world_close(struct world *world)
{
	launch_records_free(world->records);
	pipeline_free(world->pipeline);
	resolver_free(world->resolver);
	python_registry_free(world->python);
	address_spaces_free(world->spaces);
	file_store_free(world->files);
	capture_writer_free(world->writer);
	*world = (struct world){0};
}

static void world_open(struct world *world)
{
	struct address_space_listener listener = {.context = world, .file_added = on_file_added};
	struct capture_writer_options options = {.size = sizeof(options)};
	struct pipeline_parts parts = {.only_descendants = true};

	setenv("XDG_CACHE_HOME", "/proc", 1); /* no cache */
	check(file_store_new(&world->files, NULL, NULL) == 0);
	check(address_spaces_new(&world->spaces, &listener) == 0);
	check(capture_writer_open(&world->writer, "/dev/null", &options, NULL) == 0);
	check(resolver_new(&world->resolver, world->spaces, world->files, world->writer) == 0);
	parts.spaces = world->spaces;
	parts.files = world->files;
	check(python_registry_new(&world->python, world->files, NULL, world->writer) == 0);
	parts.resolver = world->resolver;
	parts.python = world->python;
	parts.writer = world->writer;
	check(pipeline_new(&world->pipeline, &parts) == 0);
	check(launch_records_new(&world->records, world->writer) == 0);
	fill_address_space(world);
	wait_for_tables(world);
}

/* As the ring hands it over: the length it claims lies within what is there. */
static void add_record(struct world *world, const uint8_t *bytes, size_t length)
{
	_cleanup_free_ uint8_t *exact = malloc(length);
	struct wire_record *record = (struct wire_record *)exact;

	check(exact);
	memcpy(exact, bytes, length);
	if (record->length_bytes > length)
		record->length_bytes = (uint32_t)length;
	if (record->reserved) {
		if (launch_records_is_one(record))
			check(launch_records_add(world->records, world->pipeline, world->python,
				      PID, record) == 0);
		return;
	}
	if (record->length_bytes >= sizeof(struct wire_sample))
		((struct wire_sample *)exact)->pid = PID;
	check(pipeline_add_record(world->pipeline, record) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static struct world world;

	if (world.inputs == INPUTS_A_WORLD)
		world_close(&world);
	if (world.inputs++ == 0)
		world_open(&world);
	while (length >= 2) {
		size_t record_length = MIN((size_t)bytes[0] | (size_t)bytes[1] << 8, length - 2);

		if (record_length >= sizeof(struct wire_record))
			add_record(&world, bytes + 2, record_length);
		bytes += 2 + record_length;
		length -= 2 + record_length;
	}
	check(pipeline_process(world.pipeline, UINT64_MAX) == 0);
	check(pipeline_retry(world.pipeline, true) == 0);
	check(pipeline_waiting(world.pipeline) == 0);
	check(capture_writer_flush(world.writer, NULL) == 0);
	return 0;
}
