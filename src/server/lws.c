/* SPDX-License-Identifier: Apache-2.0 */
#include "server/lws.h"

#include <dlfcn.h>
#include <errno.h>

struct lws_library lws;

#ifdef LWS_LINKED
int lws_load(struct errmsg *err)
{
	(void)err;
	lws = (struct lws_library){
#define LWS_ADDRESS(name) .name = name,
		LWS_FUNCTIONS(LWS_ADDRESS)
#undef LWS_ADDRESS
	};
	return 0;
}
#else
/* LWS_LIBRARY is the name of the one that sonde was built with: others have other structs. */
int lws_load(struct errmsg *err)
{
	static const char *const names[] = {
#define LWS_NAME(name) #name,
		LWS_FUNCTIONS(LWS_NAME)
#undef LWS_NAME
	};
	void *library = dlopen(LWS_LIBRARY, RTLD_NOW | RTLD_LOCAL), **place = (void **)&lws;

	if (!library)
		return errmsg_set(err, -ENOTSUP,
			"serving needs libwebsockets, which is not there (%s): install its "
			"package, such as libwebsockets17",
			dlerror());
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		place[i] = dlsym(library, names[i]);
		if (!place[i])
			return errmsg_set(err, -ENOTSUP,
				"%s lacks the function %s: install the release that sonde was "
				"built with",
				LWS_LIBRARY, names[i]);
	}
	return 0;
}
#endif
