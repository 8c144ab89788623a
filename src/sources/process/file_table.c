/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/process/file_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process_view.h"
#include "base/strbuf.h"

#define ANONYMOUS_NAME "//anon" /* as side-band events have it */
#define DELETED_SUFFIX " (deleted)"

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_deleted(const char *name)
{
	size_t length = strlen(name), suffix = strlen(DELETED_SUFFIX);

	return length > suffix && strcmp(name + length - suffix, DELETED_SUFFIX) == 0;
}

/* Files that are as often JIT code as libraries: only their contents tell. */
static bool may_hold_jit_code(const char *name)
{
	static const char *const prefixes[] = {
		"/memfd:", "/dev/", "/SYSV", "/anon_hugepage", "anon_inode:"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (starts_with(name, prefixes[i]))
			return true;
	}
	return is_deleted(name); /* libffi maps unlinked temporary files */
}

static bool begins_like_elf(const struct file_sighting *sighting)
{
	_cleanup_close_ int fd = -1;
	char path[96], magic[4];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, sighting->pid,
		sighting->start, sighting->end);
	fd = open_regular_file(path, &status);
	return fd >= 0 && pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	       memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

static enum mapping_kind special_kind(const char *name)
{
	if (strcmp(name, "[vdso]") == 0)
		return MAPPING_VDSO;
	if (strcmp(name, "[vsyscall]") == 0)
		return MAPPING_VSYSCALL;
	if (strcmp(name, "[uprobes]") == 0)
		return MAPPING_UPROBES;
	return MAPPING_ANONYMOUS;
}

/* "//enomem" and "//toolong" replace paths that the kernel could not write; they still have an
 * inode or a build-id. */
static bool is_file(const struct file_sighting *sighting)
{
	return sighting->inode || sighting->build_id->length;
}

static const char *special_name(const char *name)
{
	bool named = name[0] == '[' && !starts_with(name, "[anon:");

	return named ? name : ANONYMOUS_NAME;
}

static enum mapping_kind file_kind(const struct file_sighting *sighting)
{
	if (sighting->build_id->length || !may_hold_jit_code(sighting->name))
		return MAPPING_FILE;
	return begins_like_elf(sighting) ? MAPPING_FILE : MAPPING_ANONYMOUS;
}

/* The path without " (deleted)", so that a file keeps its identity when it is unlinked. */
static int path_length(const char *name)
{
	return (int)(strlen(name) - (is_deleted(name) ? strlen(DELETED_SUFFIX) : 0));
}

static int intern_identity(struct file_table *table, const struct strbuf *text, uint32_t *ret_id)
{
	const uint32_t no_file = UINT32_MAX;
	int result = strbuf_status(text);

	if (result == 0)
		result = array_reserve(&table->file_of_identity, 1); /* ids index it */
	if (result == 0)
		result = intern_add(&table->identities, text->data, text->length, ret_id);
	if (result == 1)
		result = array_append(&table->file_of_identity, no_file);
	return result;
}

/* Two identities at most: by build-id and by inode, each with the path. */
struct identities {
	uint32_t ids[2];
	int count;
};

static int add_identity(
	struct file_table *table, struct identities *identities, const struct strbuf *text)
{
	int error = intern_identity(table, text, &identities->ids[identities->count]);

	if (error == 0)
		identities->count++;
	return error;
}

static int identify(struct file_table *table, const struct file_sighting *sighting,
	struct identities *ret_identities)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	const char *name = sighting->name;
	int error = 0;

	*ret_identities = (struct identities){0};
	if (!is_file(sighting)) {
		strbuf_addf(&text, "S%s", special_name(name));
		return add_identity(table, ret_identities, &text);
	}
	/* Whom root records may have written the build-id of another file into his. */
	if (sighting->build_id->length && (geteuid() != 0 || !sighting->inode)) {
		strbuf_addf(&text, "B%.*s", path_length(name), name);
		strbuf_add_char(&text, '\0');
		strbuf_add_bytes(&text, sighting->build_id->bytes, sighting->build_id->length);
		error = add_identity(table, ret_identities, &text);
	}
	if (error == 0 && sighting->inode) {
		strbuf_clear(&text);
		strbuf_addf(&text, "I%" PRIx64 ":%" PRIx64 ":%.*s", sighting->device,
			sighting->inode, path_length(name), name);
		error = add_identity(table, ret_identities, &text);
	}
	return error;
}

/* False when what is known of both says that an inode number was used again, or a file rebuilt in
 * place. */
static bool may_be_same(const struct mapped_file *file, const struct file_sighting *sighting)
{
	if (file->inode_generation && sighting->inode_generation &&
		file->inode_generation != sighting->inode_generation)
		return false;
	return !file->build_id.length || !sighting->build_id->length ||
	       (file->build_id.length == sighting->build_id->length &&
		       memcmp(file->build_id.bytes, sighting->build_id->bytes,
			       file->build_id.length) == 0);
}

static struct mapped_file *find_file(const struct file_table *table,
	const struct identities *identities, const struct file_sighting *sighting)
{
	for (int i = 0; i < identities->count; i++) {
		uint32_t index = table->file_of_identity.items[identities->ids[i]];

		if (index != UINT32_MAX && may_be_same(table->files.items[index], sighting))
			return table->files.items[index];
	}
	return NULL;
}

static struct mapped_file *new_file(
	const struct file_table *table, const struct file_sighting *sighting)
{
	struct mapped_file *file = calloc(1, sizeof(*file));
	bool real = is_file(sighting);

	if (!file)
		return NULL;
	file->index = (uint32_t)table->files.count;
	file->kind = real ? file_kind(sighting) : special_kind(sighting->name);
	file->path = real ? strndup(sighting->name, (size_t)path_length(sighting->name))
			  : strdup(special_name(sighting->name));
	file->pid = sighting->pid;
	file->start = sighting->start;
	file->end = sighting->end;
	if (file->path)
		return file;
	free(file);
	return NULL;
}

/* Adds what this sighting knows and earlier ones did not. */
static void learn(struct mapped_file *file, const struct file_sighting *sighting)
{
	if (!is_file(sighting))
		return;
	if (!file->inode) {
		file->device = sighting->device;
		file->inode = sighting->inode;
	}
	if (!file->inode_generation)
		file->inode_generation = sighting->inode_generation;
	if (!file->build_id.length)
		file->build_id = *sighting->build_id;
}

int file_table_resolve(
	struct file_table *table, const struct file_sighting *sighting, uint32_t *ret_index)
{
	struct identities identities;
	struct mapped_file *file;
	int error = identify(table, sighting, &identities), added = 0;

	if (error < 0)
		return error;
	file = find_file(table, &identities, sighting);
	if (!file) {
		file = new_file(table, sighting);
		if (!file || array_append(&table->files, file) < 0) {
			if (file)
				free(file->path);
			free(file);
			return -ENOMEM;
		}
		added = 1;
	}
	learn(file, sighting);
	for (int i = 0; i < identities.count; i++)
		table->file_of_identity.items[identities.ids[i]] = file->index;
	*ret_index = file->index;
	return added;
}

void file_table_done(struct file_table *table)
{
	array_foreach (&table->files, file) {
		free((*file)->path);
		free(*file);
	}
	array_done(&table->files);
	array_done(&table->file_of_identity);
	intern_done(&table->identities);
}
