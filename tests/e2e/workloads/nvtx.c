/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx SCENARIO [number] [library]: ranges and marks of known names and numbers. Built twice: with
 * the test double of NVTX's headers, and in the vendor tests with NVIDIA's own. Ends with 5; with
 * $NVTX_CHECK set also compares what the calls return with what NVTX promises to programs
 * that are recorded, and ends with 3 where that differs.
 */
#include "doubles/nvtx/nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static bool checked;
static int number = 1;
static const char *library;

static void expect(long got, long wanted, const char *what)
{
	if (!checked || got == wanted)
		return;
	printf("%s: %ld, not %ld\n", what, got, wanted);
	fflush(stdout);
	_exit(3);
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void spin(double ms)
{
	double end = now_ns() + ms * 1e6;

	while (now_ns() < end)
		;
}

static nvtxEventAttributes_t event_of(const char *name)
{
	nvtxEventAttributes_t event = {.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.messageType = NVTX_MESSAGE_TYPE_ASCII};

	event.message.ascii = name;
	return event;
}

/* ---- the scenarios ---- */

static void nested(void)
{
	expect(nvtxRangePushA("outer"), 0, "first push");
	spin(30);
	for (int i = 0; i < 3; i++) {
		expect(nvtxRangePushA("inner"), 1, "second push");
		spin(20);
		expect(nvtxRangePop(), 1, "first pop");
	}
	expect(nvtxRangePop(), 0, "second pop");
}

/* The stacks of domains are apart: their ranges need not nest. */
static void domains(void)
{
	nvtxDomainHandle_t one = nvtxDomainCreateA("one"), two = nvtxDomainCreateA("two");
	nvtxEventAttributes_t event = event_of("crossing");

	expect(nvtxDomainRangePushEx(one, &event), 0, "push in one");
	expect(nvtxDomainRangePushEx(two, &event), 0, "push in two");
	expect(nvtxDomainRangePop(one), 0, "pop in one");
	spin(5);
	expect(nvtxDomainRangePop(two), 0, "pop in two");
	expect(one == nvtxDomainCreateA("one"), 1, "the same domain");
}

static void payloads(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("one");
	nvtxEventAttributes_t event = event_of("with payload");

	nvtxDomainNameCategoryA(domain, 7, "seventh");
	event.category = 7;
	event.payloadType = NVTX_PAYLOAD_TYPE_INT32;
	event.payload.llValue = -1;
	event.payload.iValue = -42;
	nvtxDomainRangePushEx(domain, &event);
	event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	event.payload.dValue = 2.5;
	event.category = 8;
	event.message.ascii = "a mark";
	nvtxDomainMarkEx(domain, &event);
	nvtxDomainRangePop(domain);
	nvtxMarkA("plain mark");
}

#ifdef HAS_NVTX_PAYLOAD
struct collective {
	size_t bytes;
	int peer, operation;
	double ratio;
};

/* As NCCL tells of its operations. */
static void collectives(void)
{
	static const nvtxPayloadEnum_t operations[] = {{"Sum", 0, 0}, {"Max", 2, 0}};
	const nvtxPayloadEnumAttr_t operation = {
		.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
			     NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
			     NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE |
			     NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID,
		.entries = operations,
		.numEntries = 2,
		.sizeOfEnum = sizeof(int),
		.schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 11,
	};
	const nvtxPayloadSchemaEntry_t entries[] = {
		{.type = NVTX_PAYLOAD_ENTRY_TYPE_SIZE, .name = "Message size [bytes]"},
		{.type = NVTX_PAYLOAD_ENTRY_TYPE_INT,
			.name = "Peer rank",
			.offset = offsetof(struct collective, peer)},
		{.type = operation.schemaId, .name = "Reduction operation"},
		{.type = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, .name = "Ratio"},
	};
	const nvtxPayloadSchemaAttr_t schema = {
		.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID,
		.name = "AllReduce",
		.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
		.entries = entries,
		.numEntries = 4,
		.payloadStaticSize = sizeof(struct collective),
		.schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 1,
	};
	const struct collective values = {1 << 20, -3, 2, 0.5};
	nvtxPayloadData_t data = {schema.schemaId, sizeof(values), &values};
	nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
	nvtxEventAttributes_t event = event_of("ncclAllReduce");

	nvtxPayloadEnumRegister(domain, &operation);
	expect((long)nvtxPayloadSchemaRegister(domain, &schema), (long)schema.schemaId, "schema");
	event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
	event.reserved0 = 1;
	event.payload.ullValue = (uint64_t)(uintptr_t)&data;
	nvtxDomainRangePushEx(domain, &event);
	nvtxDomainRangePop(domain);
	/* With a name from the schema, and the payload at its end. */
	nvtxRangePushPayload(domain, &data, 1);
	nvtxRangePopPayload(domain, &data, 1);
}
#else
static void collectives(void)
{
}
#endif

static void *end_range(void *range)
{
	nvtxRangeEnd(*(nvtxRangeId_t *)range);
	return NULL;
}

/* They overlap, and end on another thread. */
static void processes_ranges(void)
{
	nvtxRangeId_t first = nvtxRangeStartA("first"), second = nvtxRangeStartA("second");
	pthread_t thread;

	expect(first && second && first != second, 1, "ids of ranges");
	spin(5);
	pthread_create(&thread, NULL, end_range, &first);
	pthread_join(thread, NULL);
	nvtxRangeEnd(second);
}

/* The text at one address changes; the same text stands at several. */
static void changing_names(void)
{
	char buffer[32], other[] = "step 1";

	for (int i = 0; i < 3; i++) {
		snprintf(buffer, sizeof(buffer), "step %d", i);
		nvtxRangePushA(buffer);
		nvtxRangePop();
	}
	nvtxRangePushA(other);
	nvtxRangePop();
}

static void strange_names(void)
{
	static char longest[10001];

	memset(longest, 'x', sizeof(longest) - 1);
	nvtxRangePushA(longest);
	nvtxRangePop();
	nvtxRangePushA("bad \xff\xc3 bytes");
	nvtxRangePop();
	nvtxRangePushW(L"wide \u00e4\u20ac\U0001f600");
	nvtxRangePop();
	nvtxRangePushA(NULL);
	nvtxRangePop();
	nvtxRangePushA("");
	nvtxRangePop();
}

static void *leave_open(void *unused)
{
	nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "leaver");
	nvtxRangePushA("left open");
	nvtxRangePushA("left open too");
	spin(50);
	return NULL;
}

static void unbalanced(void)
{
	pthread_t thread;

	expect(nvtxRangePop() < 0, 1, "pop of nothing");
	nvtxRangeEnd(123456);
	pthread_create(&thread, NULL, leave_open, NULL);
	pthread_join(thread, NULL);
}

static void all(void)
{
	int (*library_work)(int);
	void *handle;

	nested();
	domains();
	payloads();
	collectives();
	processes_ranges();
	changing_names();
	strange_names();
	unbalanced();
	for (int i = 0; library && i < 2; i++) {
		handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
		library_work = handle ? (int (*)(int))dlsym(handle, "library_work") : NULL;
		if (!library_work)
			_exit(4);
		expect(library_work(10), 0, "the library's ranges");
		dlclose(handle);
	}
	nvtxRangePushA("after the library");
	nvtxRangePop();
}

static pthread_barrier_t together;

/* All at once: none ends before the last has begun. */
static void *many_ranges(void *unused)
{
	pthread_barrier_wait(&together);
	for (int i = 0; i < 200; i++) {
		nvtxRangePushA("many outer");
		nvtxRangePushA("many inner");
		nvtxRangePop();
		nvtxRangePop();
	}
	pthread_barrier_wait(&together);
	return NULL;
}

static void threads(void)
{
	pthread_t made[128];
	int count = number > 128 ? 128 : number;

	pthread_barrier_init(&together, NULL, (unsigned)count);
	for (int i = 0; i < count; i++)
		pthread_create(&made[i], NULL, many_ranges, NULL);
	for (int i = 0; i < count; i++)
		pthread_join(made[i], NULL);
}

static void open_ranges(void)
{
	nvtxRangePushA("open outer");
	nvtxRangeStartA("open started");
	nvtxRangePushA("open inner");
	spin(100);
}

/* The child's ranges are nobody's; the parent goes on. */
static void fork_child(void)
{
	pid_t child;
	int status;

	nvtxRangePushA("around the fork");
	child = fork();
	if (child == 0) {
		nvtxRangePushA("of the child");
		nvtxRangePop();
		nvtxRangePop();
		_exit(7);
	}
	waitpid(child, &status, 0);
	nvtxRangePop();
	printf("child ended with %d\n", WEXITSTATUS(status));
}

/* The next program of this process has its own names. */
static void execute(void)
{
	nvtxRangePushA("before");
	spin(20);
	if (number > 0)
		execl("/proc/self/exe", "nvtx", "nested", (char *)NULL);
}

/* Prints the nanoseconds of a push and a pop. */
static void bench(void)
{
	double begin, best = 1e9;

	nvtxRangePushA("warm");
	nvtxRangePop();
	for (int round = 0; round < 50; round++) {
		begin = now_ns();
		for (int i = 0; i < number; i++) {
			nvtxRangePushA("a range of the program");
			nvtxRangePop();
		}
		begin = (now_ns() - begin) / number;
		if (begin < best)
			best = begin;
		usleep(20000);
	}
	printf("%.1f ns\n", best);
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{"nested", nested},
	{"all", all},
	{"threads", threads},
	{"_exit", open_ranges},
	{"kill", open_ranges},
	{"fork", fork_child},
	{"exec", execute},
	{"bench", bench},
};

int main(int count, char **arguments)
{
	const char *name = count > 1 ? arguments[1] : "all";

	checked = getenv("NVTX_CHECK") && *getenv("NVTX_CHECK");
	if (count > 2)
		number = (int)strtol(arguments[2], NULL, 10);
	if (count > 3)
		library = arguments[3];
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		if (strcmp(scenarios[i].name, name) == 0)
			scenarios[i].run();
	}
	fflush(stdout);
	if (strcmp(name, "_exit") == 0)
		_exit(5);
	if (strcmp(name, "kill") == 0)
		raise(SIGKILL);
	return 5;
}
