/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sensors of /sys/class/hwmon: GPUs of AMD (power) and Intel (energy), and the INA3221 of Jetson
 * modules (volts and amperes of three rails). Other chips are left out: what their channels feed is
 * not known.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "sources/energy/source.h"
#include "sources/energy/sysfs.h"

#define FOLDER        "/sys/class/hwmon"
#define TICK_NS       (20 * NS_PER_MS)
#define BOARD_LIMIT_W 3000
/* The INA3221 has three channels; what Linux numbers 4 to 7 are their shunts and their sum. */
#define INA3221_CHANNELS 3

struct hwmon_rail {
	int fd, current_fd;           /* current: millivolts times milliamperes; else -1 */
	int temperature_fd, clock_fd; /* -1 */
};

struct hwmon {
	struct hwmon_rail rails[ENERGY_MAX_RAILS];
	unsigned count;
};

struct chip {
	const struct energy_place *place;
	const char *folder; /* "hwmon3" */
	unsigned number;    /* of those of its name */
	char device[96];    /* the bus address of what it is in */
};

static int open_file(const struct chip *chip, const char *file)
{
	char path[SYSFS_PATH_MAX];
	int r = sysfs_path(path, chip->place->root, FOLDER "/%s/%s", chip->folder, file);

	return r < 0 ? r : sysfs_open(path);
}

static int read_file(const struct chip *chip, const char *file, char *text, size_t size)
{
	_cleanup_close_ int fd = open_file(chip, file);

	return fd < 0 ? fd : sysfs_reread_text(fd, text, size);
}

static struct energy_rail *add_rail(struct hwmon *hwmon, const struct chip *chip,
	struct energy_found *found, int fd, const char *name)
{
	struct energy_rail *rail;

	rail = energy_found_add(found, WIRE_ENERGY_GPU, chip->device, "%s", name);
	if (!rail) {
		close(fd);
		return NULL;
	}
	rail->implausible_w = BOARD_LIMIT_W;
	hwmon->rails[hwmon->count++] = (struct hwmon_rail){
		.fd = fd, .current_fd = -1, .temperature_fd = -1, .clock_fd = -1};
	return rail;
}

/*
 * `power1_input` is of the moment and newer, `power1_average` a mean of a length that no one
 * states. In an APU, which is what has a voltage named vddnb, both are of the processor too.
 */
static void open_amdgpu(struct hwmon *hwmon, const struct chip *chip, struct energy_found *found)
{
	bool is_average = false, is_apu;
	char label[32] = "", name[64];
	_cleanup_close_ int cap = open_file(chip, "power1_cap");
	int fd = open_file(chip, "power1_input");
	struct energy_rail *rail;
	int64_t value;

	if (fd < 0 || sysfs_reread(fd, &value) < 0) {
		closep(&fd);
		fd = open_file(chip, "power1_average");
		is_average = true;
	}
	if (fd < 0) {
		char path[SYSFS_PATH_MAX];

		sysfs_path(path, chip->place->root, FOLDER "/%s/power1_average", chip->folder);
		energy_found_tried(found, path, fd);
		return;
	}
	is_apu = read_file(chip, "in1_label", label, sizeof(label)) == 0 &&
		 strcmp(label, "vddnb") == 0;
	snprintf(name, sizeof(name), "%s-%u", is_apu ? "apu" : "amdgpu", chip->number);
	rail = add_rail(hwmon, chip, found, fd, name);
	if (!rail)
		return;
	rail->kind = ENERGY_POWER;
	rail->quality = is_average ? WIRE_ENERGY_AVERAGED : WIRE_ENERGY_INTEGRATED;
	if (is_apu) {
		rail->part = WIRE_ENERGY_PLATFORM;
		rail->encloses = ENERGY_CPU_PARTS;
	}
	hwmon->rails[hwmon->count - 1].temperature_fd = open_file(chip, "temp1_input");
	hwmon->rails[hwmon->count - 1].clock_fd = open_file(chip, "freq1_input");
	if (cap >= 0 && sysfs_reread(cap, &value) == 0 && value > 0)
		rail->limit_w = (double)value / 1e6;
}

/* Counters in microjoules: xe has one of the card and one of the package on it, i915 one. */
static void open_intel(struct hwmon *hwmon, const struct chip *chip, struct energy_found *found)
{
	int card = -1;

	for (unsigned channel = 1; channel <= 2; channel++) {
		char file[32], label[32] = "", name[64];
		struct energy_rail *rail;
		int fd;

		snprintf(file, sizeof(file), "energy%u_input", channel);
		fd = open_file(chip, file);
		if (fd < 0)
			continue;
		snprintf(file, sizeof(file), "energy%u_label", channel);
		read_file(chip, file, label, sizeof(label));
		snprintf(name, sizeof(name), "intelgpu-%u%s%s", chip->number, label[0] ? "-" : "",
			label);
		rail = add_rail(hwmon, chip, found, fd, name);
		if (!rail)
			return;
		rail->kind = ENERGY_COUNTER;
		rail->nj_per_unit = 1000;
		rail->may_rest = true; /* switched off between two uses */
		rail->parent = channel == 2 ? card : -1;
		if (channel == 1)
			card = (int)found->count - 1;
	}
}

static enum wire_energy_part ina3221_part(const char *label)
{
	if (strcmp(label, "VDD_IN") == 0)
		return WIRE_ENERGY_PLATFORM;
	if (strstr(label, "CPU_GPU")) /* one rail for both */
		return WIRE_ENERGY_OTHER;
	if (strstr(label, "GPU"))
		return WIRE_ENERGY_GPU;
	if (strstr(label, "CPU"))
		return WIRE_ENERGY_CPU;
	if (strstr(label, "DDR") || strstr(label, "MEM"))
		return WIRE_ENERGY_DRAM;
	return WIRE_ENERGY_OTHER;
}

static void open_ina3221_channel(
	struct hwmon *hwmon, const struct chip *chip, struct energy_found *found, unsigned channel)
{
	char file[32], label[32] = "", enabled[8] = "1";
	struct energy_rail *rail;
	int volts, amperes;

	snprintf(file, sizeof(file), "in%u_label", channel);
	if (read_file(chip, file, label, sizeof(label)) < 0 || !label[0])
		return; /* a channel that nothing is wired to */
	snprintf(file, sizeof(file), "in%u_enable", channel);
	read_file(chip, file, enabled, sizeof(enabled));
	if (strcmp(enabled, "0") == 0)
		return;
	snprintf(file, sizeof(file), "in%u_input", channel);
	volts = open_file(chip, file);
	snprintf(file, sizeof(file), "curr%u_input", channel);
	amperes = open_file(chip, file);
	if (volts < 0 || amperes < 0) {
		closep(&volts);
		closep(&amperes);
		return;
	}
	rail = add_rail(hwmon, chip, found, volts, label);
	if (!rail) {
		close(amperes);
		return;
	}
	rail->kind = ENERGY_POWER;
	rail->quality = WIRE_ENERGY_INTEGRATED;
	rail->part = ina3221_part(label);
	hwmon->rails[hwmon->count - 1].current_fd = amperes;
}

/* VDD_IN feeds the whole module: the other rails are in it, whichever chip measures them. */
static void place_ina3221(struct energy_found *found, unsigned first)
{
	for (unsigned i = first; i < found->count; i++) {
		if (found->rails[i].part != WIRE_ENERGY_PLATFORM)
			continue;
		found->rails[i].encloses = ENERGY_ALL_PARTS & ~ENERGY_PART(WIRE_ENERGY_PLATFORM);
		for (unsigned k = first; k < found->count; k++) {
			if (k != i)
				found->rails[k].parent = (int)i;
		}
		return;
	}
}

static void open_ina3221(struct hwmon *hwmon, const struct chip *chip, struct energy_found *found)
{
	unsigned first = found->count;

	for (unsigned channel = 1; channel <= INA3221_CHANNELS; channel++)
		open_ina3221_channel(hwmon, chip, found, channel);
	place_ina3221(found, first);
}

static const struct {
	const char *name;
	void (*open)(struct hwmon *hwmon, const struct chip *chip, struct energy_found *found);
} chips[] = {
	{"amdgpu", open_amdgpu},
	{"i915", open_intel},
	{"xe", open_intel},
	{"ina3221", open_ina3221},
};

static void find_device(struct chip *chip)
{
	char path[SYSFS_PATH_MAX], target[SYSFS_PATH_MAX], *name;
	ssize_t length;

	if (sysfs_path(path, chip->place->root, FOLDER "/%s/device", chip->folder) < 0)
		return;
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return;
	target[length] = '\0';
	name = strrchr(target, '/');
	snprintf(chip->device, sizeof(chip->device), "%.95s", name ? name + 1 : target);
}

static void open_chips(struct hwmon *hwmon, const struct energy_place *place,
	const struct sysfs_names *folders, struct energy_found *found)
{
	unsigned numbers[ARRAY_SIZE(chips)] = {0};

	for (unsigned i = 0; i < folders->count; i++) {
		struct chip chip = {.place = place, .folder = folders->items[i]};
		char name[64];

		if (read_file(&chip, "name", name, sizeof(name)) < 0)
			continue;
		for (size_t kind = 0; kind < ARRAY_SIZE(chips); kind++) {
			if (strcmp(chips[kind].name, name) != 0)
				continue;
			find_device(&chip);
			chip.number = numbers[kind]++;
			chips[kind].open(hwmon, &chip, found);
		}
	}
}

static void hwmon_close(void *state)
{
	struct hwmon *hwmon = state;

	for (unsigned i = 0; hwmon && i < hwmon->count; i++) {
		closep(&hwmon->rails[i].fd);
		closep(&hwmon->rails[i].current_fd);
		closep(&hwmon->rails[i].temperature_fd);
		closep(&hwmon->rails[i].clock_fd);
	}
	free(hwmon);
}

static int hwmon_open(
	void **ret_state, const struct energy_place *place, struct energy_found *ret_found)
{
	_cleanup_sysfs_names_ struct sysfs_names folders = {0};
	struct hwmon *hwmon = calloc(1, sizeof(*hwmon));
	char path[SYSFS_PATH_MAX];
	struct errmsg tried;
	int r;

	if (!hwmon)
		return -ENOMEM;
	r = sysfs_path(path, place->root, FOLDER);
	if (r == 0)
		r = sysfs_list(path, "hwmon", &folders);
	if (r == 0)
		open_chips(hwmon, place, &folders, ret_found);
	tried = ret_found->absence;
	if (tried.text[0])
		errmsg_set(&ret_found->absence, 0, "sensors cannot be read: %s", tried.text);
	if (ret_found->count) {
		ret_found->tick_ns = TICK_NS;
		*ret_state = hwmon;
		return 0;
	}
	hwmon_close(hwmon);
	if (!tried.text[0])
		errmsg_set(&ret_found->absence, 0,
			"%s holds no sensor of a GPU of AMD (amdgpu) or Intel (i915, xe), or of a "
			"Jetson module (ina3221)%s%s%s; their drivers bring them",
			path, r < 0 ? " (" : "", r < 0 ? strerror(-r) : "", r < 0 ? ")" : "");
	return r < 0 ? r : -ENOENT;
}

/* Each is stamped by itself: a chip on a slow bus takes milliseconds. */
static void hwmon_read(void *state, struct energy_reading *readings)
{
	struct hwmon *hwmon = state;

	for (unsigned i = 0; i < hwmon->count; i++) {
		const struct hwmon_rail *rail = &hwmon->rails[i];
		uint64_t begin_ns = monotonic_now_ns();
		int64_t value = 0, milliamperes = 0;
		int error = sysfs_reread(rail->fd, &value);

		if (error == 0 && rail->current_fd >= 0) {
			error = sysfs_reread(rail->current_fd, &milliamperes);
			if (__builtin_mul_overflow(value, milliamperes, &value))
				error = -EINVAL;
		}
		if (error == 0 && value < 0)
			error = -EINVAL;
		readings[i].time_ns = begin_ns + (monotonic_now_ns() - begin_ns) / 2;
		readings[i].error = error;
		readings[i].value = error ? 0 : (uint64_t)value;
	}
}

static void hwmon_look(void *state, struct wire_energy_state *states)
{
	struct hwmon *hwmon = state;

	for (unsigned i = 0; i < hwmon->count; i++) {
		const struct hwmon_rail *rail = &hwmon->rails[i];
		int64_t value;

		if (rail->temperature_fd >= 0 && sysfs_reread(rail->temperature_fd, &value) == 0 &&
			value > INT32_MIN && value < INT32_MAX)
			states[i].temperature_mc = (int32_t)value;
		if (rail->clock_fd >= 0 && sysfs_reread(rail->clock_fd, &value) == 0 && value > 0 &&
			value / 1000000 < UINT32_MAX)
			states[i].clock_mhz = (uint32_t)(value / 1000000);
	}
}

const struct energy_source hwmon_energy = {
	.name = "hwmon",
	.title = "sensors of GPUs and boards, from hwmon",
	.parts = ENERGY_PART(WIRE_ENERGY_GPU) | ENERGY_PART(WIRE_ENERGY_CPU) |
		 ENERGY_PART(WIRE_ENERGY_DRAM) | ENERGY_PART(WIRE_ENERGY_PLATFORM),
	.open = hwmon_open,
	.read = hwmon_read,
	.look = hwmon_look,
	.close = hwmon_close,
};
