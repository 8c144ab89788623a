/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libwebsockets, opened when a server begins: linked, it and OpenSSL would cost every start of
 * sonde a millisecond. A program with its libraries inside (LWS_LINKED) has it, too. Its functions
 * are called as lws.NAME() after lws_load().
 */
#pragma once

#include <libwebsockets.h>

#include "base/errmsg.h"

#define LWS_FUNCTIONS(FUNCTION)                                                                    \
	FUNCTION(lws_add_http_header_by_name)                                                      \
	FUNCTION(lws_add_http_header_content_length)                                               \
	FUNCTION(lws_add_http_header_status)                                                       \
	FUNCTION(lws_adopt_descriptor_vhost)                                                       \
	FUNCTION(lws_callback_on_writable)                                                         \
	FUNCTION(lws_cancel_service)                                                               \
	FUNCTION(lws_close_reason)                                                                 \
	FUNCTION(lws_context_destroy)                                                              \
	FUNCTION(lws_context_user)                                                                 \
	FUNCTION(lws_create_context)                                                               \
	FUNCTION(lws_create_vhost)                                                                 \
	FUNCTION(lws_finalize_http_header)                                                         \
	FUNCTION(lws_frame_is_binary)                                                              \
	FUNCTION(lws_get_context)                                                                  \
	FUNCTION(lws_get_vhost_listen_port)                                                        \
	FUNCTION(lws_hdr_copy)                                                                     \
	FUNCTION(lws_hdr_copy_fragment)                                                            \
	FUNCTION(lws_hdr_custom_copy)                                                              \
	FUNCTION(lws_hdr_total_length)                                                             \
	FUNCTION(lws_http_get_uri_and_method)                                                      \
	FUNCTION(lws_http_transaction_completed)                                                   \
	FUNCTION(lws_is_final_fragment)                                                            \
	FUNCTION(lws_is_first_fragment)                                                            \
	FUNCTION(lws_partial_buffered)                                                             \
	FUNCTION(lws_service)                                                                      \
	FUNCTION(lws_set_log_level)                                                                \
	FUNCTION(lws_set_timeout)                                                                  \
	FUNCTION(lws_write)

struct lws_library {
#define LWS_MEMBER(name) __typeof__(&name) name;
	LWS_FUNCTIONS(LWS_MEMBER)
#undef LWS_MEMBER
};

extern struct lws_library lws;

/* Once. Returns 0, or -ENOTSUP with a sentence. */
int lws_load(struct errmsg *err);
