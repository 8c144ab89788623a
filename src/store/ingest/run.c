/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a run: what it was, and its figures as the report has them. */
#include <time.h>

#include "analyses/inference/runs.h"
#include "model/trace_capture.h"
#include "store/ingest/capture.h"

/* Of nanoseconds that are a mean or a percentile; null where there is none. */
static struct store_value ns_of(double ns)
{
	return ns >= 0 && ns < 9e18 ? store_integer((int64_t)(ns + 0.5)) : store_null();
}

static void set_place(const struct capture *capture, struct store_value *values)
{
	const struct model_session *session = &capture->model->session;
	const struct capture_stats *stats = &capture->model->stats.values;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	values[STORE_RUN_PATH] = store_text(capture->path);
	values[STORE_RUN_BYTES] = store_u64(capture->bytes);
	values[STORE_RUN_ADDED] =
		store_integer((int64_t)now.tv_sec * (int64_t)NS_PER_S + now.tv_nsec);
	if (!session->present)
		return;
	values[STORE_RUN_TIME] = store_known(session->start_realtime_ns);
	values[STORE_RUN_HOST] = store_text(session->host);
	values[STORE_RUN_COMMAND] = store_text(session->command_line);
	values[STORE_RUN_SONDE_VERSION] = store_text(session->sonde_version);
	values[STORE_RUN_ARCHITECTURE] = store_text(session->architecture);
	values[STORE_RUN_KERNEL_RELEASE] = store_text(session->kernel_release);
	values[STORE_RUN_CPU_COUNT] = store_known(session->cpu_count);
	if (capture->model->stats.present && stats->exit_status >= 0)
		values[STORE_RUN_EXIT_STATUS] = store_integer(stats->exit_status);
}

static void set_labels(const struct store_labels *labels, struct store_value *values)
{
	values[STORE_RUN_COMMIT] = store_text(labels->commit);
	values[STORE_RUN_EXPERIMENT] = store_text(labels->experiment);
	values[STORE_RUN_NOTES] = store_text(labels->notes);
	values[STORE_RUN_PRICE] = store_number(labels->rates.price_per_kwh);
	values[STORE_RUN_CO2_RATE] = store_number(labels->rates.co2_g_per_kwh);
}

/* ---- amounts ---- */

/* Time in which any device worked. Works come by their starts. */
static uint64_t device_busy_ns(const struct model *model)
{
	uint64_t busy = 0, until = 0;

	array_foreach (&model->device_works, work) {
		uint64_t begin = MAX(work->start_ns, until);

		if (work->end_ns > begin)
			busy += work->end_ns - begin;
		until = MAX(until, work->end_ns);
	}
	return busy;
}

static void set_amounts(const struct capture *capture, struct store_value *values)
{
	const struct model *model = capture->model;
	uint64_t duration = model_duration_ns(model), samples = model_running_samples(model);
	uint64_t cpu_time = samples * model_sample_weight_ns(model);

	values[STORE_RUN_DURATION] = store_known(duration);
	values[STORE_RUN_PROCESSES] = store_known(model->processes.count);
	values[STORE_RUN_THREADS] = store_known(model->threads.count);
	if (!model_is_foreign(model) && model->session.cpu_count) {
		values[STORE_RUN_SAMPLES] = store_u64(samples);
		if (model->stats.present)
			values[STORE_RUN_LOST] = store_u64(model->stats.values.samples_lost);
		if (model_has_time(model))
			values[STORE_RUN_CPU_TIME] = store_u64(cpu_time);
		if (model_has_time(model) && duration)
			values[STORE_RUN_CPU_BUSY] = store_number(
				(double)cpu_time / (double)duration / model->session.cpu_count);
	}
	if (model->device_works.count) {
		values[STORE_RUN_GPU_WORKS] = store_u64(model->device_works.count);
		if (duration)
			values[STORE_RUN_GPU_BUSY] =
				store_number((double)device_busy_ns(model) / (double)duration);
	}
}

/* Of the steps of which there are most. */
static void set_steps(const struct capture *capture, struct store_value *values)
{
	const struct step_row *most = NULL;

	array_foreach (&capture->view.steps->rows, row) {
		if (!most || row->count > most->count)
			most = row;
	}
	if (!most || !most->count)
		return;
	values[STORE_RUN_STEPS] = store_u64(most->count);
	values[STORE_RUN_STEP_P50] = store_known(most->p50_ns);
}

/* ---- inference ---- */

static void set_requests(const struct inference *inference, struct store_value *values)
{
	const struct spread *metrics = inference->metrics;
	uint64_t requests = 0, prompt = 0;
	bool is_vllm = false, knows_prompt = true;

	array_foreach (&inference->requests, request) {
		requests += *request->id != '\0' || request->of_engine;
		prompt += request->prompt_tokens;
		knows_prompt = knows_prompt && request->prompt_known;
		is_vllm = is_vllm || request->of_engine;
	}
	if (!inference->requests.count)
		return;
	values[STORE_RUN_REQUESTS] = store_u64(requests);
	if (knows_prompt)
		values[STORE_RUN_PROMPT_TOKENS] = store_u64(prompt);
	values[STORE_RUN_OUTPUT_TOKENS] = store_u64(inference->output_tokens);
	values[STORE_RUN_ENGINE] = store_text(is_vllm ? "vllm" : NULL);
	values[STORE_RUN_TTFT_P99] = ns_of(metrics[INFERENCE_TTFT].p99);
	values[STORE_RUN_E2E_P50] = ns_of(metrics[INFERENCE_E2E].p50);
	values[STORE_RUN_E2E_P99] = ns_of(metrics[INFERENCE_E2E].p99);
	values[STORE_RUN_ITL_P50] = ns_of(inference->itl.p50);
	values[STORE_RUN_ITL_P99] = ns_of(inference->itl.p99);
}

static void set_run(const struct run *run, struct store_value *values)
{
	values[STORE_RUN_MODEL] = store_text(run->model);
	values[STORE_RUN_PRECISION] = store_text(run->precision);
	values[STORE_RUN_BATCH_SIZE] = store_number(run->labels[RUN_BATCH]);
	values[STORE_RUN_CONTEXT_LENGTH] = store_number(run->labels[RUN_CONTEXT]);
	values[STORE_RUN_PARAMETERS] = store_number(run->labels[RUN_PARAMETERS]);
	values[STORE_RUN_ACTIVE_PARAMETERS] = store_number(run->labels[RUN_ACTIVE]);
	values[STORE_RUN_EXPERTS] = store_number(run->labels[RUN_EXPERTS]);
	values[STORE_RUN_KV_CACHE] = store_number(run->kv_cache_bytes);
	values[STORE_RUN_EXPERT_BALANCE] = store_number(run->expert_balance);
	values[STORE_RUN_EXPERT_ENTROPY] = store_number(run->expert_entropy);
	values[STORE_RUN_EXPERT_LOAD] = store_number(run->expert_load);
	values[STORE_RUN_TOKENS_PER_S] = store_number(run->figures[RUN_TOKENS_PER_S]);
	values[STORE_RUN_TTFT_P50] = ns_of(run->figures[RUN_TTFT_NS]);
	values[STORE_RUN_TPOT_P50] = ns_of(run->figures[RUN_TPOT_NS]);
}

/* ---- energy ---- */

/* Of inference what its requests took; of other programs what was measured while they ran. */
static void set_energy(const struct capture *capture, struct store_value *values)
{
	const struct inference_joules *joules = capture->view.joules;
	const struct joules *all = &joules->all;
	bool has_requests = capture->view.inference->requests.count != 0;
	uint64_t duration = model_duration_ns(capture->model);
	double measured = capture->energy.measured_j;

	values[STORE_RUN_MEASURED_J] = store_number(measured);
	if (!has_requests) {
		values[STORE_RUN_ENERGY_J] = store_number(measured);
		values[STORE_RUN_ENERGY_REASON] = store_text(isnan(measured) ? all->reason : NULL);
		values[STORE_RUN_UNCERTAINTY_J] = store_number(capture->energy.uncertainty_j);
		if (duration)
			values[STORE_RUN_AVERAGE_W] =
				store_number(measured / ((double)duration / 1e9));
		return;
	}
	values[STORE_RUN_ENERGY_J] = store_number(all->full_j);
	values[STORE_RUN_UNCERTAINTY_J] = store_number(all->uncertainty_j);
	values[STORE_RUN_ENERGY_REASON] = store_text(all->reason);
	values[STORE_RUN_AVERAGE_W] = store_number(all->average_w);
	values[STORE_RUN_PEAK_W] = store_number(all->peak_w);
	values[STORE_RUN_PREFILL_J] = store_number(joules->phases[INFERENCE_PHASE_PREFILL].full_j);
	values[STORE_RUN_DECODE_J] = store_number(joules->phases[INFERENCE_PHASE_DECODE].full_j);
	values[STORE_RUN_JOULES_PER_TOKEN] = store_number(joules->per_output_token_j);
	values[STORE_RUN_TOKENS_PER_J] = store_number(joules->tokens_per_j);
	values[STORE_RUN_EDP] = store_number(joules->edp_js);
	values[STORE_RUN_EDP_PER_TOKEN] = store_number(joules->edp_per_token_js);
	values[STORE_RUN_PREFILL_EDP] = store_number(joules->phase_edp_js[INFERENCE_PHASE_PREFILL]);
	values[STORE_RUN_DECODE_EDP] = store_number(joules->phase_edp_js[INFERENCE_PHASE_DECODE]);
}

int capture_describe(const struct capture *capture, const char *id,
	const struct store_labels *labels, struct store_value values[STORE_RUN_COLUMN_MAX])
{
	struct run run = {.capture = capture->path};
	int r = run_describe(&run, capture->model, capture->view.inference);

	if (r < 0)
		return r;
	for (int i = 0; i < STORE_RUN_COLUMN_MAX; i++)
		values[i] = store_null();
	values[STORE_RUN_NUMBER] = store_integer(store_number_of(id));
	values[STORE_RUN_ID] = store_text(id);
	set_place(capture, values);
	set_labels(labels, values);
	set_amounts(capture, values);
	set_steps(capture, values);
	set_run(&run, values);
	set_requests(capture->view.inference, values);
	set_energy(capture, values);
	return 0;
}
