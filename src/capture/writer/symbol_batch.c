/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/writer/symbol_batch.h"

#include <errno.h>

#include "capture/fields.h"
#include "capture/protobuf.h"

void symbol_batch_start(
	struct symbol_batch *batch, const struct interning *interning, capture_id mapping)
{
	_cleanup_strbuf_ struct strbuf name = {0};
	const uint8_t *build_id;
	size_t build_id_length;
	const char *path = interning_mapping_path(interning, mapping, &build_id, &build_id_length);

	symbol_batch_clear(batch);
	batch->mapping = mapping;
	/* Perfetto's name of the mapping, which is what symbols are matched by. */
	if (path && path[0] && !is_plain_path(path))
		strbuf_add_char(&name, '/');
	strbuf_add(&name, path ? path : "");
	if (strbuf_status(&name) < 0)
		batch->module.status = strbuf_status(&name);
	/* As it is, even where it is not UTF-8: it has to be the mapping's path byte by byte. */
	pb_put_bytes(&batch->module, MODULE_PATH, strbuf_cstr(&name), name.length);
	if (build_id_length)
		pb_put_bytes(&batch->module, MODULE_BUILD_ID, build_id, build_id_length);
}

int symbol_batch_add(struct symbol_batch *batch, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	struct strbuf *module = &batch->module;
	size_t start = module->length, address = pb_begin(module, MODULE_ADDRESSES);

	pb_put_u64(module, ADDRESS_VALUE, rel_pc);
	for (size_t i = 0; i < count; i++) {
		size_t line = pb_begin(module, ADDRESS_LINES);

		pb_put_text(module, LINE_FUNCTION, lines[i].function);
		pb_put_text(module, LINE_FILE, lines[i].file);
		if (lines[i].line)
			pb_put_u64(module, LINE_NUMBER, lines[i].line);
		pb_end(module, line);
	}
	pb_end(module, address);
	if (strbuf_status(module) == 0)
		return 0;
	pb_cut(module, start);
	return -ENOMEM;
}

void symbol_batch_clear(struct symbol_batch *batch)
{
	strbuf_clear(&batch->module);
}

void symbol_batch_done(struct symbol_batch *batch)
{
	strbuf_done(&batch->module);
}
