/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine offers besides bpf(2) and perf_event_open(2): files, capabilities, namespaces.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "cli/doctor/doctor.h"

/* The first PID namespace of every kernel has this number (PROC_PID_INIT_INO). */
#define INITIAL_PID_NAMESPACE "pid:[4026531836]"

/* include/uapi/linux/fs.h of Linux 6.11; older headers lack it. */
struct procmap_query_6_11 {
	uint64_t size, query_flags, query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};
_Static_assert(sizeof(struct procmap_query_6_11) == 104, "the kernel's layout");
#define PROCMAP_QUERY_6_11 _IOWR('f', 17, struct procmap_query_6_11)

static const struct {
	unsigned number;
	const char *name;
} used_capabilities[] = {
	{CAP_BPF, "CAP_BPF"},
	{CAP_PERFMON, "CAP_PERFMON"},
	{CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
	{CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE"},
	{CAP_SYSLOG, "CAP_SYSLOG"},
};

static uint64_t effective_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &header, data) < 0)
		return 0;
	return (uint64_t)data[1].effective << 32 | data[0].effective;
}

const char *doctor_missing_capabilities(uint64_t wanted)
{
	static char names[128];
	uint64_t effective = effective_capabilities();
	size_t length = 0;

	names[0] = '\0';
	/* CAP_SYS_ADMIN stood for these before Linux 5.8, and still does. */
	if (effective & DOCTOR_CAPABILITY(CAP_SYS_ADMIN))
		effective |= DOCTOR_CAPABILITY(CAP_BPF) | DOCTOR_CAPABILITY(CAP_PERFMON) |
			     DOCTOR_CAPABILITY(CAP_CHECKPOINT_RESTORE);
	for (size_t index = 0; index < ARRAY_SIZE(used_capabilities); index++) {
		uint64_t bit = DOCTOR_CAPABILITY(used_capabilities[index].number);

		if (!(wanted & bit) || (effective & bit))
			continue;
		length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
			length ? ", " : "", used_capabilities[index].name);
	}
	return names;
}

const char *doctor_privilege_fix(void)
{
	static char fix[PATH_MAX + 128];
	char self[PATH_MAX];
	ssize_t length;

	if (geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_PERFMON, 0, 0, 0) != 1)
		return "start the container with --cap-add=BPF --cap-add=PERFMON "
		       "--cap-add=SYS_PTRACE --cap-add=CHECKPOINT_RESTORE --cap-add=SYSLOG "
		       "--security-opt seccomp=unconfined";
	if (geteuid() == 0)
		return "start the container with --security-opt seccomp=unconfined, or boot "
		       "without lockdown";
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length < 0)
		return "run sonde with sudo";
	self[length] = '\0';
	snprintf(fix, sizeof(fix),
		"sudo setcap "
		"cap_bpf,cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore,cap_syslog+ep %s",
		self);
	return fix;
}

long doctor_sysctl(const char *name)
{
	_cleanup_strbuf_ struct strbuf path = {0}, text = {0};
	char *end;
	long value;

	strbuf_addf(&path, "/proc/sys/kernel/%s", name);
	if (read_whole_file(strbuf_cstr(&path), 256, &text) < 0)
		return -1;
	value = strtol(strbuf_cstr(&text), &end, 10);
	return end == strbuf_cstr(&text) ? -1 : value;
}

void doctor_probe_btf(struct doctor_result *ret_result)
{
	static const char path[] = "/sys/kernel/btf/vmlinux";
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	uint16_t magic = 0;

	if (fd < 0 || read(fd, &magic, sizeof(magic)) != sizeof(magic) || magic != 0xeb9f)
		doctor_no(ret_result, "run a kernel built with CONFIG_DEBUG_INFO_BTF=y",
			"%s cannot be read: %s", path,
			fd < 0 ? strerror(errno) : "it does not begin like type information");
	else if (fstat(fd, &status) == 0)
		doctor_works(ret_result, "%s, %lld KiB", path, (long long)status.st_size / 1024);
}

void doctor_probe_procmap_query(struct doctor_result *ret_result)
{
	_cleanup_close_ int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct procmap_query_6_11 query = {
		.size = sizeof(query),
		.query_addr = (uint64_t)(uintptr_t)doctor_checks,
	};

	if (fd >= 0 && ioctl(fd, PROCMAP_QUERY_6_11, &query) == 0)
		doctor_works(ret_result, "the PROCMAP_QUERY ioctl answers");
	else
		doctor_partly(ret_result, "run a kernel of release 6.11 or later",
			"no PROCMAP_QUERY ioctl (%s); /proc/PID/maps is read as text instead",
			strerror(errno));
}

/* The first entry of /proc/self/map_files, whose names can be listed without any privilege. */
static int first_map_file(char *path, size_t size)
{
	DIR *directory = opendir("/proc/self/map_files");
	struct dirent *entry;
	int result = -ENOENT;

	if (!directory)
		return -errno;
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, size, "/proc/self/map_files/%.64s", entry->d_name);
		result = 0;
		break;
	}
	closedir(directory);
	return result;
}

void doctor_probe_map_files(struct doctor_result *ret_result)
{
	_cleanup_close_ int fd = -1;
	char path[128];
	int result = first_map_file(path, sizeof(path));

	if (result == 0) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		result = fd < 0 ? -errno : 0;
	}
	if (result == 0)
		doctor_works(ret_result, "mapped files open through /proc/PID/map_files");
	else
		doctor_partly(ret_result, doctor_privilege_fix(),
			"/proc/PID/map_files does not open (%s): files are found by path, so "
			"deleted and replaced ones keep no names",
			strerror(-result));
}

/* Whose mappings need a privilege: another user's for an ordinary user, anyone's for root in a
 * container. */
static bool is_foreign(int proc_fd, const char *pid)
{
	struct stat status;

	if (strtol(pid, NULL, 10) == getpid() || fstatat(proc_fd, pid, &status, 0) < 0)
		return false;
	return geteuid() == 0 || status.st_uid != geteuid();
}

struct readable_count {
	unsigned readable, foreign;
};

static struct readable_count count_readable(void)
{
	struct readable_count count = {0};
	DIR *directory = opendir("/proc");
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		_cleanup_close_ int fd = -1;
		char path[64];

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
			!is_foreign(dirfd(directory), entry->d_name))
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/maps", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			continue; /* ended meanwhile */
		count.foreign++;
		count.readable += fd >= 0;
	}
	if (directory)
		closedir(directory);
	return count;
}

void doctor_probe_other_processes(struct doctor_result *ret_result)
{
	const char *missing = doctor_missing_capabilities(DOCTOR_CAPABILITY(CAP_SYS_PTRACE));
	struct readable_count count = count_readable();

	if (count.readable || (count.foreign == 0 && !*missing))
		doctor_works(ret_result, "mappings of %u of %u other processes can be read",
			count.readable, count.foreign);
	else
		doctor_partly(ret_result, doctor_privilege_fix(),
			"mappings of other users' processes cannot be read%s%s",
			*missing ? ": missing " : "", missing);
}

/* True when some text symbol has an address other than 0. */
static bool kallsyms_has_addresses(FILE *file)
{
	char line[512];

	for (unsigned count = 0; count < 100 && fgets(line, sizeof(line), file); count++) {
		if (strtoull(line, NULL, 16) != 0)
			return true;
	}
	return false;
}

void doctor_probe_kallsyms(struct doctor_result *ret_result)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/kallsyms", "re");
	long restricted = doctor_sysctl("kptr_restrict");

	if (!file)
		doctor_no(ret_result, "run a kernel built with CONFIG_KALLSYMS=y",
			"/proc/kallsyms does not open: %s", strerror(errno));
	else if (kallsyms_has_addresses(file))
		doctor_works(ret_result, "/proc/kallsyms shows addresses");
	else if (geteuid() == 0)
		doctor_no(ret_result, "sudo sysctl kernel.kptr_restrict=0",
			"/proc/kallsyms hides addresses: kernel.kptr_restrict is %ld", restricted);
	else
		doctor_no(ret_result,
			"sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1",
			"/proc/kallsyms hides addresses from this user: kernel.kptr_restrict is "
			"%ld, kernel.perf_event_paranoid is %ld, CAP_SYSLOG is missing",
			restricted, doctor_sysctl("perf_event_paranoid"));
}

void doctor_probe_capabilities(struct doctor_result *ret_result)
{
	const char *missing = doctor_missing_capabilities(UINT64_MAX);

	if (*missing)
		doctor_partly(ret_result, doctor_privilege_fix(), "missing: %s", missing);
	else
		doctor_works(ret_result, "everything that sonde uses");
}

static bool is_mounted(const char *path, unsigned long magic)
{
	struct statfs status;

	return statfs(path, &status) == 0 && (unsigned long)status.f_type == magic;
}

void doctor_probe_tracefs(struct doctor_result *ret_result)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

	for (size_t index = 0; index < ARRAY_SIZE(places); index++) {
		if (is_mounted(places[index], TRACEFS_MAGIC)) {
			doctor_works(ret_result, "mounted on %s", places[index]);
			return;
		}
	}
	doctor_partly(ret_result, "sudo mount -t tracefs tracefs /sys/kernel/tracing",
		"not mounted; CPU sampling does not need it");
}

void doctor_probe_cgroup2(struct doctor_result *ret_result)
{
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

	for (size_t index = 0; index < ARRAY_SIZE(places); index++) {
		if (is_mounted(places[index], CGROUP2_SUPER_MAGIC)) {
			doctor_works(ret_result, "mounted on %s", places[index]);
			return;
		}
	}
	doctor_partly(ret_result, "sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup",
		"cgroup v2 is not mounted; processes carry no container name");
}

void doctor_probe_pid_namespace(struct doctor_result *ret_result)
{
	char name[64];
	ssize_t length = readlink("/proc/self/ns/pid", name, sizeof(name) - 1);

	if (length < 0) {
		doctor_partly(
			ret_result, "", "/proc/self/ns/pid cannot be read: %s", strerror(errno));
		return;
	}
	name[length] = '\0';
	if (strcmp(name, INITIAL_PID_NAMESPACE) == 0)
		doctor_works(ret_result, "the machine's own");
	else
		doctor_partly(ret_result,
			"run sonde on the host, or start the container with --pid=host",
			"a container's (%s): only its processes can be seen", name);
}

void doctor_probe_debug_info(struct doctor_result *ret_result)
{
	const char *servers = getenv("DEBUGINFOD_URLS");

	if (access("/usr/lib/debug/.build-id", R_OK) == 0)
		doctor_works(ret_result, "separate debug files in /usr/lib/debug/.build-id");
	else
		doctor_partly(ret_result, "sudo apt-get install libc6-dbg",
			"no separate debug files in /usr/lib/debug: system libraries show exported "
			"names and no lines%s",
			servers && *servers ? " (DEBUGINFOD_URLS is set, but not used)" : "");
}
