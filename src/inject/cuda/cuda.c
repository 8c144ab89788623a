/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cuda/cuda.h"

#include <errno.h>
#include <stdlib.h>

#include "inject/cuda/runtime.h"

struct cuda cuda;

int InitializeInjection(void);

/* The parent goes on; CUPTI called in a child can hang for ever. */
static void in_child(void)
{
	atomic_store_explicit(&cuda.dead, true, memory_order_relaxed);
}

static void stop(void)
{
	cuda_writer_stop();
	atomic_store_explicit(&cuda.dead, true, memory_order_relaxed);
}

static void on_state(uint32_t id, const struct cupti_state_data *data)
{
	if (data && data->message)
		inject_note(WIRE_NOTE_REFUSED, "CUPTI reports %serror %d: %s",
			id == CUPTI_STATE_FATAL_ERROR ? "fatal " : "", data->result, data->message);
}

static void on_callback(void *user, int domain, uint32_t id, const void *data)
{
	int saved_errno;

	if (domain == CUPTI_DOMAIN_DRIVER || domain == CUPTI_DOMAIN_RUNTIME) {
		cuda_on_call(domain, id, data);
		return;
	}
	if (atomic_load_explicit(&cuda.dead, memory_order_relaxed))
		return;
	saved_errno = errno;
	if (domain == CUPTI_DOMAIN_RESOURCE) {
		cuda_pm_on_resource(id, data);
		if (!cuda_pc_on_resource(id, data))
			cuda_on_resource(id, data);
	} else if (domain == CUPTI_DOMAIN_STATE) {
		on_state(id, data);
	}
	errno = saved_errno;
}

static void note_not_found(const struct cupti_search *search)
{
	char looked[WIRE_DEVICE_TEXT_BYTES - 64];

	inject_note(WIRE_NOTE_NO_TRACER,
		"The program uses CUDA, but no libcupti that fits its driver was found, so "
		"that device work is not timed: install the package nvidia-cuda-cupti of "
		"the program's CUDA version, or name the file in SONDE_CUPTI.");
	if (*cuda.cupti.refused)
		inject_note(WIRE_NOTE_NO_TRACER, "%.*s.", (int)sizeof(looked), cuda.cupti.refused);
	cupti_looked_text(search, looked, sizeof(looked));
	inject_note(
		WIRE_NOTE_NO_TRACER, "libcupti was looked for in the loader's path, %s.", looked);
}

/* Found, opened, and reported. */
static bool open_cupti(void)
{
	static struct cupti_search search;
	char version[32];

	if (!cupti_open(&cuda.cupti, &search)) {
		note_not_found(&search);
		return false;
	}
	cupti_version_text(cuda.cupti.version, version, sizeof(version));
	inject_note(WIRE_NOTE_TRACER, "CUDA is traced by CUPTI %s, %s.", version, cuda.cupti.path);
	cuda_note_faults(CUPTI_ALWAYS);
	if (cuda.graph_level)
		cuda_note_faults(CUPTI_AT_GRAPH_LEVEL);
	return true;
}

cupti_result cuda_subscribe(void)
{
	char holder[CUPTI_SUBSCRIBER_NAME_BYTES];
	uint8_t zeroed = 1;
	cupti_result result = cupti_subscribe(&cuda.cupti, on_callback, holder);

	if (result != CUPTI_OK) {
		cuda_note_refusal(result, holder);
		return result;
	}
	if (cuda.cupti.call.set_thread_id_type)
		cuda.cupti.call.set_thread_id_type(CUPTI_THREAD_ID_SYSTEM);
	cupti_set_attribute(
		&cuda.cupti, CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER, sizeof(zeroed), &zeroed);
	result = cupti_register(&cuda.cupti, &cuda_buffer_callbacks);
	if (result != CUPTI_OK) {
		cuda_note_refusal(result, "");
		return result;
	}
	cuda_level_init();
	cuda_latency_start();
	cuda_device_graphs_start();
	/* Graphs are made before windows open: their callbacks are always on. */
	cuda_enable_graphs(true);
	cuda_pc_watch();
	cuda_pm_watch();
	cupti_enable_callback(&cuda.cupti, CUPTI_DOMAIN_STATE, CUPTI_STATE_FATAL_ERROR, true);
	cupti_enable_callback(&cuda.cupti, CUPTI_DOMAIN_STATE, CUPTI_STATE_ERROR, true);
	return CUPTI_OK;
}

/* dynolog has Kineto trace when it is asked from outside, which no hook sees. */
static bool is_left_to_daemon(void)
{
	bool is_left = inject_tracer_mode() == WIRE_TRACER_YIELD;

	if (!secure_getenv("KINETO_USE_DAEMON"))
		return false;
	inject_note(WIRE_NOTE_PROFILER,
		is_left ? "KINETO_USE_DAEMON is set: CUPTI is left to PyTorch's profiler (--cuda "
			  "yield), and device work is not recorded here."
			: "KINETO_USE_DAEMON is set, and sonde has CUPTI: traces that dynolog asks "
			  "for lack the GPU's work. --cuda yield leaves CUPTI to them.");
	return is_left;
}

/* Without CUPTI the writer still tells why. */
static bool start(void)
{
	cuda.graph_level = cuda.tells_nodes = inject_graph_mode() == WIRE_GRAPH_WHOLE;
	if (!inject_worker_init(&cuda.writer))
		return false;
	if (!is_left_to_daemon() && open_cupti() && cuda_buffers_init())
		cuda.subscribed = cuda_subscribe() == CUPTI_OK;
	return cuda_writer_start();
}

/* libcuda calls this when the program first uses CUDA: 1 is fine, and it returns nothing else. */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	runtime_enter(&cuda_runtime);
	return 1;
}

const struct runtime cuda_runtime = {
	.start = start,
	.stop = stop,
	.flush = cuda_writer_flush,
	.join_session = cuda_writer_flush,
	.meet_profiler = cuda_writer_meet_profiler,
	.fork_child = in_child,
};
