/* SPDX-License-Identifier: Apache-2.0 */
/* Energy in captures: written, read, joined, split by windows, and in the model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "capture-energy-example.h"
#include "capture/split/split.h"
#include "model/energy.h"
#include "model/windows.h"

static char folder[64], path[128];

static int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/sonde-energy-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/run.pftrace", folder);
	return 0;
}

static int remove_folder(void **state)
{
	for (unsigned i = 1; i <= 2; i++) {
		_cleanup_free_ char *part = capture_split_path(path, i);

		unlink(part);
	}
	unlink(path);
	return rmdir(folder);
}

/* The lines on energy. */
static void read_energy(const char *from, struct strbuf *ret_text)
{
	const struct capture_visitor visitor = {
		.energy_domain = text_energy_domain,
		.energy_interval = text_energy_interval,
		.energy_state = text_energy_state,
		.energy_absence = text_energy_absence,
	};
	struct errmsg err = {"no message"};

	if (capture_read(from, &visitor, ret_text, NULL, &err) < 0)
		fail_msg("%s", err.text);
}

#define DOMAIN_TEXT(package, cores)                                                                \
	"energy domain " package " in 0 part=2 quality=1 period=10000000 cost=900 error=0.05 "     \
	"idle=12.5 name=\"package-0\" source=\"perf\" device=\"socket 0\" limit=65.5 "             \
	"cpus=\"0-3,8\"\n"                                                                         \
	"energy domain " cores " in " package " part=3 quality=4 period=0 cost=0 error=nan "       \
	"idle=nan replayed name=\"cores\" source=\"replay\" device=\"\"\n"                         \
	"no energy source=\"nvml\" reason=\"there is no libnvidia-ml.so.1\"\n"

#define EXAMPLE_TEXT(package, cores)                                                               \
	DOMAIN_TEXT(package, cores)                                                                \
	"energy of " package " 1000000000000..1000000000010 gap=0 nj=1000 busy=5\n"                \
	"energy of " cores " 1000000000000..1000000000010 gap=0 nj=400 busy=5\n"                   \
	"energy state of " package " at 1000000000005 -1500 mC 2400 MHz\n"                         \
	"energy of " package                                                                       \
	" 1000000000010..1000000000020 gap=4 nj=0 busy=18446744073709551615\n"                     \
	"energy state of " cores " at 1000000000015 -2147483648 mC 0 MHz\n"                        \
	"energy of " package " 1000000000020..1000000000030 gap=0 nj=0 busy=5\n"

static void test_round_trip(void **state)
{
	for (int uncompressed = 0; uncompressed < 2; uncompressed++) {
		_cleanup_strbuf_ struct strbuf text = {0};

		assert_int_equal(write_file(path, uncompressed, false, write_energy_example), 0);
		read_energy(path, &text);
		assert_string_equal(strbuf_cstr(&text), EXAMPLE_TEXT("1", "2"));
	}
}

/* What viewers are shown is not read as a counter of a program. */
static int refuse_counter(void *context, const struct capture_counter *counter)
{
	fail_msg("the counter %s", counter->name);
	return 0;
}

static void test_power_is_no_counter(void **state)
{
	const struct capture_visitor visitor = {.counter = refuse_counter};

	assert_int_equal(write_file(path, true, false, write_energy_example), 0);
	assert_int_equal(capture_read(path, &visitor, NULL, NULL, NULL), 0);
}

static void append_file(const char *to, const char *from)
{
	char bytes[65536];
	FILE *in = fopen(from, "rb"), *out = fopen(to, "ab");
	size_t count;

	assert_non_null(in);
	assert_non_null(out);
	while ((count = fread(bytes, 1, sizeof(bytes), in)) > 0)
		assert_int_equal(fwrite(bytes, 1, count, out), count);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

/* Domains of another recording have ids of their own; in the model they are the same rails. */
static void test_joined(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	_cleanup_model_ struct model *model = NULL;
	char other[160];

	snprintf(other, sizeof(other), "%s.other", path);
	assert_int_equal(write_file(path, false, false, write_energy_example), 0);
	assert_int_equal(write_file(other, false, false, write_energy_example), 0);
	append_file(path, other);
	unlink(other);
	read_energy(path, &text);
	assert_string_equal(strbuf_cstr(&text), EXAMPLE_TEXT("1", "2") EXAMPLE_TEXT("3", "4"));
	assert_int_equal(model_load(&model, path, NULL, NULL, NULL), 0);
	assert_int_equal(model->energy_domains.count, 2);
	assert_int_equal(model->energy_domains.items[1].parent, 0);
	assert_true(model->energy_domains.items[0].limit_w == 65.5);
	assert_string_equal(model->energy_domains.items[0].cpus, "0-3,8");
	assert_true(isnan(model->energy_domains.items[1].limit_w));
	assert_string_equal(model->energy_domains.items[1].cpus, "");
	assert_int_equal(model->energy_absences.count, 1);
	/* The same time counts once. */
	assert_int_equal(model->energy_domains.items[0].interval_count, 3);
	assert_true(fabs(model->energy_intervals.items[0].energy_j - 1e-6) < 1e-15);
	assert_int_equal(model->energy_intervals.items[1].gap, WIRE_ENERGY_SUSPENDED);
	assert_true(isnan(model->energy_intervals.items[1].busy_ns));
	assert_int_equal(model->energy_states.count, 4);
}

static int write_windows(struct capture_writer *writer)
{
	const uint64_t start_ns = example_session.start_time_ns;
	const struct capture_window windows[] = {
		{.number = 1, .begin_ns = start_ns + 5, .end_ns = start_ns + 8, .first_step = 1},
		{.number = 2, .begin_ns = start_ns + 8, .end_ns = start_ns + 25, .first_step = 1},
	};
	int r = write_energy_example(writer);

	for (unsigned i = 0; i < ARRAY_SIZE(windows); i++)
		r = r ?: capture_writer_window(writer, &windows[i]);
	return r;
}

static double energy_of(const struct model *model, uint32_t domain)
{
	double sum = 0;

	array_foreach (&model->energy_intervals, interval) {
		if (interval->domain == domain)
			sum += interval->energy_j;
	}
	return sum;
}

/* A window has of each interval as much as lies in it, and says so. */
static void test_windows(void **state)
{
	const double expected[] = {3e-7 + 2e-7, 3e-7, 2e-7};

	assert_int_equal(write_file(path, false, false, write_windows), 0);
	for (uint32_t number = 0; number <= 2; number++) {
		struct window_choice choice = {.count = number > 0, .ranges = {{number, number}}};
		_cleanup_model_ struct model *model = NULL;

		assert_int_equal(model_load_windows(&model, path, &choice, NULL, NULL, NULL), 0);
		assert_true(fabs(energy_of(model, 0) - expected[number]) < 1e-15);
		assert_true(model->energy_intervals.items[0].is_cut);
	}
}

/* Parts have the intervals that reach into them, as they were measured. */
static void test_split(void **state)
{
	uint32_t count = 0;
	struct errmsg err;

	assert_int_equal(write_file(path, false, false, write_windows), 0);
	assert_int_equal(capture_split(path, NULL, &count, &err), 0);
	assert_int_equal(count, 2);
	for (uint32_t i = 1; i <= 2; i++) {
		_cleanup_free_ char *part = capture_split_path(path, i);
		_cleanup_model_ struct model *model = NULL;
		_cleanup_strbuf_ struct strbuf text = {0};

		read_energy(part, &text);
		assert_non_null(strstr(strbuf_cstr(&text), DOMAIN_TEXT("1", "2")));
		assert_non_null(strstr(strbuf_cstr(&text), "1000000000000..1000000000010"));
		assert_int_equal(model_load(&model, part, NULL, NULL, NULL), 0);
		assert_true(fabs(energy_of(model, 0) - (i == 1 ? 3e-7 : 2e-7)) < 1e-15);
		assert_int_equal(model->energy_domains.items[0].interval_count, i == 1 ? 1 : 3);
	}
}

/* A recording without a file says the same to its visitor. */
static void test_live(void **state)
{
	const struct capture_visitor visitor = energy_text_visitor();
	_cleanup_strbuf_ struct strbuf text = {0};
	struct capture_writer *writer = NULL;
	const char *energy;

	assert_int_equal(capture_writer_open_live(&writer, &visitor, &text, NULL), 0);
	assert_int_equal(write_energy_example(writer), 0);
	assert_int_equal(capture_writer_close(writer, NULL), 0);
	energy = strstr(strbuf_cstr(&text), "energy domain");
	assert_non_null(energy);
	assert_string_equal(energy, EXAMPLE_TEXT("1", "2"));
}

/* Intervals before their domain, and of one that nobody told, are left out. */
static int write_orphans(struct capture_writer *writer)
{
	int r = capture_writer_session(writer, &example_session);

	r = r ?: write_energy_interval(writer, 1, 0, 10, 1, WIRE_ENERGY_NO_GAP);
	r = r ?: capture_writer_energy_domain(writer, &energy_example_domains[1]);
	r = r ?: write_energy_interval(writer, 2, 10, 10, 1, WIRE_ENERGY_NO_GAP);
	r = r ?: write_energy_interval(writer, 2, 10, 20, 7, WIRE_ENERGY_NO_GAP);
	return r ?: write_energy_interval(writer, 9, 20, 30, 1, WIRE_ENERGY_NO_GAP);
}

static void test_orphans(void **state)
{
	_cleanup_model_ struct model *model = NULL;

	assert_int_equal(write_file(path, false, false, write_orphans), 0);
	assert_int_equal(model_load(&model, path, NULL, NULL, NULL), 0);
	assert_int_equal(model->energy_domains.count, 1);
	assert_int_equal(model->energy_domains.items[0].parent, MODEL_NONE);
	assert_int_equal(model->energy_intervals.count, 1);
	assert_true(fabs(model->energy_intervals.items[0].energy_j - 7e-9) < 1e-18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_power_is_no_counter),
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_orphans),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
