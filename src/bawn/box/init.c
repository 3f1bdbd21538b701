/*
 * init: PID 1 of every box.
 *
 *     init [-w FILE] [-r FD] [-f FD] [-e NAME]... [-d NAME]... [-s DIR] [-p PROXY] -- COMMAND [ARG...]
 *
 *     -w FILE   do nothing until this file is there (bawn has looked at the box); 125 after 30 s
 *     -r FD     a pipe to which one byte is written when the command is about to begin
 *     -f FD     a pipe of signal numbers, one byte each (runsc passes signals on only with a terminal)
 *     -e NAME   keep this environment variable; with none given, all are kept (an image brings its own)
 *     -d NAME   make this directory below $HOME (one level at a time, a parent first)
 *     -s DIR    copy this tree into $HOME
 *     -p PROXY  serve the one way out: loopback, led to the proxy at this Unix socket or ADDRESS:PORT (way.c)
 *
 * In this order: proves that its kernel is gVisor's (a runtime named "runsc" that is really runc
 * must not run anything), gives up every privilege it might have been left, fills $HOME, opens the
 * way out where there is one, and runs COMMAND as a child in a process group of its own. Then it reaps whatever is
 * orphaned, forwards every signal, its own and those of the pipe, to that group, and ends with the command's status; the kernel
 * ends the rest of the box with it.
 *
 * Exit status: the command's own; 128+n for signal n; 125 this is not gVisor, the seed could not
 * be copied or the way not be opened; 126 COMMAND cannot be executed; 127 COMMAND was not found.
 *
 * Static and free of dependencies: it runs in any image, before anything of the image does.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "way.h"

enum { EXIT_BOX = 125, EXIT_NOEXEC = 126, EXIT_NOTFOUND = 127 };

__attribute__((noreturn, format(printf, 2, 3)))
static void fail(int status, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("bawn: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(status);
}

/* gVisor's uname is a constant of its source (pkg/sentry/kernel/version.go); newer releases name
 * themselves. Its kernel log is made up and says so. Either is proof; the host's kernel has neither. */
static int is_gvisor(void)
{
	struct utsname name;
	static char log[16384];
	if (uname(&name) == 0 && (strstr(name.version, "Sun Jan 10 15:06:54 PST 2016") ||
				  strstr(name.release, "gvisor")))
		return 1;
	int got = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof log - 1);
	return got > 0 && strstr(log, "Starting gVisor") != NULL;
}

/* The bounding set as the kernel shows it; all ones where it cannot be read. (Asking for each of 41
 * capabilities costs 3 ms under systrap, which patches a call site that repeats.) */
static unsigned long long bounding_set(void)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	close(fd);
	text[got < 0 ? 0 : got] = 0;
	const char *line = strstr(text, "CapBnd:");
	return line ? strtoull(line + 7, NULL, 16) : ~0ULL;
}

static void drop_privileges(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
	unsigned long long left = bounding_set();
	for (int cap = 0; left && cap <= 63; cap++)
		if (left >> cap & 1 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0 && errno != EINVAL)
			fail(EXIT_BOX, "cannot empty the bounding set: %s", strerror(errno));
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &header, none) != 0)
		fail(EXIT_BOX, "cannot drop capabilities: %s", strerror(errno));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		fail(EXIT_BOX, "cannot set no-new-privileges: %s", strerror(errno));
}

static void copy_file(int from_dir, int to_dir, const char *name)
{
	char buffer[65536];
	int in = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int out = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (in < 0 || out < 0)
		fail(EXIT_BOX, "cannot copy %s into the home: %s", name, strerror(errno));
	for (ssize_t got; (got = read(in, buffer, sizeof buffer)) != 0;)
		if (got < 0 || write(out, buffer, got) != got)
			fail(EXIT_BOX, "cannot copy %s into the home: %s", name, strerror(errno));
	close(in);
	close(out);
}

/* Copies the tree below `from` into `to`: directories 0700, files 0600. Closes both. */
static void copy_tree(int from, int to)
{
	DIR *dir = from < 0 ? NULL : fdopendir(from);
	if (!dir || to < 0)
		fail(EXIT_BOX, "cannot copy the seed into the home: %s", strerror(errno));
	for (struct dirent *entry; (entry = readdir(dir));) {
		struct stat st;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (fstatat(from, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			fail(EXIT_BOX, "cannot read the seed: %s", strerror(errno));
		if (S_ISDIR(st.st_mode)) {
			if (mkdirat(to, entry->d_name, 0700) != 0 && errno != EEXIST)
				fail(EXIT_BOX, "cannot make %s in the home: %s", entry->d_name,
				     strerror(errno));
			copy_tree(openat(from, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
				  openat(to, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		} else {
			copy_file(from, to, entry->d_name);
		}
	}
	closedir(dir);
	close(to);
}

/* The word to begin. Polled: no event of the host's file system reaches a box. */
static void wait_for(const char *path)
{
	const struct timespec pause = { 0, 2000000 };
	for (int left = 15000; access(path, F_OK) != 0; left--) {
		if (left == 0)
			fail(EXIT_BOX, "bawn has not given the word to begin; nothing was run");
		nanosleep(&pause, NULL);
	}
}

/* Drops every variable that is not in the list of `count` names. */
static void keep_only(char **names, int count)
{
	if (count == 0)
		return;
	char **to = environ;
	for (char **from = environ; *from; from++)
		for (int i = 0; i < count; i++) {
			size_t length = strlen(names[i]);
			if (!strncmp(*from, names[i], length) && (*from)[length] == '=') {
				*to++ = *from;
				break;
			}
		}
	*to = NULL;
}

static void run_command(char **argv, const sigset_t *mask)
{
	setpgid(0, 0);
	if (isatty(0)) {
		signal(SIGTTOU, SIG_IGN);
		tcsetpgrp(0, getpid());
		signal(SIGTTOU, SIG_DFL);
	}
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (syscall(SYS_close_range, 3, INT_MAX, 0) != 0) /* gVisor refuses a larger end */
		_exit(EXIT_BOX);
	execvp(argv[0], argv);
	int status = errno == ENOENT || errno == ENOTDIR ? EXIT_NOTFOUND : EXIT_NOEXEC;
	dprintf(2, "bawn: cannot run %s in the box: %s\n", argv[0], strerror(errno));
	_exit(status);
}

/* vfork: no copy of this address space, of which gVisor's would cost 5 ms of the start. A function
 * of its own, since the child writes into the parent's frame. */
__attribute__((noinline))
static pid_t start(char **argv, const sigset_t *mask)
{
	pid_t child = vfork();
	if (child < 0)
		fail(EXIT_BOX, "cannot fork: %s", strerror(errno));
	if (child == 0)
		run_command(argv, mask);
	setpgid(child, child); /* in both processes: whichever is first */
	return child;
}

static int status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	const char *home = getenv("HOME"), *seed = NULL, *way = NULL;
	char **kept = calloc(argc, sizeof *kept);
	int keeping = 0, control = -1, report = -1, option, at_home = home ? open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (!is_gvisor())
		fail(EXIT_BOX, "this kernel is not gVisor's: the runtime is not runsc; nothing was run");
	drop_privileges();
	while ((option = getopt(argc, argv, "+d:e:f:p:r:s:w:")) != -1) {
		if (option == 'd' && mkdirat(at_home, optarg, 0700) != 0 && errno != EEXIST)
			fail(EXIT_BOX, "cannot make %s in the home: %s", optarg, strerror(errno));
		if (option == 'e' && kept)
			kept[keeping++] = optarg;
		if (option == 'f')
			control = atoi(optarg);
		if (option == 'p')
			way = optarg;
		if (option == 'r')
			report = atoi(optarg);
		if (option == 's')
			seed = optarg;
		if (option == 'w')
			wait_for(optarg);
		if (option == '?')
			exit(EXIT_BOX);
	}
	if (optind >= argc)
		fail(EXIT_BOX, "usage: init [-w FILE] [-r FD] [-f FD] [-e NAME]... [-d NAME]... [-s DIR] [-p SOCKET] -- COMMAND [ARG...]");
	if (seed)
		copy_tree(open(seed, O_RDONLY | O_DIRECTORY | O_CLOEXEC), at_home);

	keep_only(kept, keeping);

	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	const char *wrong = way ? way_open(way) : NULL;
	if (wrong)
		fail(EXIT_BOX, "cannot open the way out: %s: %s; nothing was run", wrong, strerror(errno));
	if (way && (errno = way_start()) != 0)
		fail(EXIT_BOX, "cannot start the way out: %s; nothing was run", strerror(errno));
	if (report >= 0 && (write(report, "s", 1) != 1 || close(report) != 0))
		fail(EXIT_BOX, "cannot report: %s", strerror(errno));
	pid_t child = start(argv + optind, &before);

	struct pollfd from[2] = {
		{ signalfd(-1, &all, SFD_CLOEXEC), POLLIN, 0 },
		{ control, POLLIN, 0 },
	};
	for (;;) {
		struct signalfd_siginfo info;
		unsigned char number;
		if (poll(from, 2, -1) < 0)
			continue;
		if (from[1].revents) {
			if (read(control, &number, 1) == 1)
				kill(-child, number);
			else
				from[1].fd = -1; /* closed: nobody speaks any more */
		}
		if (!from[0].revents || read(from[0].fd, &info, sizeof info) != sizeof info)
			continue;
		if (info.ssi_signo != SIGCHLD) {
			kill(-child, info.ssi_signo);
			continue;
		}
		int status;
		for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
			if (pid == child)
				return status_of(status);
	}
}
