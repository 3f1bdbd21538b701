/*
 * launch: the last step outside. Makes the cage in which runsc itself runs, then runs it.
 *
 *     launch [-c FILE]... [-u UID:GID] [-m FILE] [-t] -- RUNSC [ARG...]
 *     launch -w [-n] [-m FILE] -- RUNSC [ARG...]
 *
 *     -c FILE   a cgroup.procs to join (one for each v1 controller, one for v2)
 *     -u U:G    rootless: make a user namespace in which uid U and gid G are 0
 *     -m FILE   mounts and late masks, see below
 *     -w        for docker's runtime entry: only the mount namespace, its mounts and the filter, in this
 *               very process (dockerd's shim holds the box, and ends it)
 *     -n        hide /proc/sys/net: runsc before 2025 takes a kernel that shows rmem_default in every
 *               network namespace for one without namespaces, and refuses to start
 *     -t        runsc shares the terminal: what that sends reaches runsc, and the box, by itself
 *
 * What the cage is, and why:
 *
 *   cgroup     joined here, so that runsc can be told --ignore-cgroups: 20 ms less, and the limits
 *              hold for runsc's own start too.
 *   PID ns     runsc is PID 1 of it, and dies with bawn (PR_SET_PDEATHSIG twice over): the kernel
 *              ends sandbox and gofer, however bawn ended. Nothing is left to sweep but files.
 *   mount ns   private, with the /proc of that PID namespace.
 *   seccomp    membarrier(2) answers ENOSYS: each Go start registers for it and waits 15 ms for an
 *              RCU grace period; Go and the Sentry have a fall-back. It takes a syscall away and
 *              adds none. (The box's own membarrier is trapped by systrap before this filter counts:
 *              seccomp(2), SECCOMP_RET_TRAP precedes SECCOMP_RET_ERRNO.)
 *   fgetxattr  answers ENOTSUP: on a symlink runsc's descriptor is O_PATH, the kernel says EBADF, and
 *              every `ls -l` in the box would end with an error. Extended attributes are lost to the
 *              box; no agent tool was found that needs them.
 *   late masks openat(2) of runsc's processes is checked by name (seccomp_unotify(2)). A
 *              mount over a masked file falls off when the host replaces that file (the Sentry
 *              drops the mount with the old inode), and a file made later has no mount at all; a
 *              name that cannot be opened stays hidden in both cases. Sentry and gofer open one
 *              component at a time, relative to a directory descriptor, so the name is the last
 *              component. They are not the adversary: were they taken over, the wall would be down.
 *
 *   mounts     Every host path that the box sees is bound here first, to a place of the run's own, and
 *              runsc is given that place. Read-only is then the kernel's: runsc's own is not (an
 *              open(2) with O_TRUNC empties a file on a mount that it calls read-only), and it is
 *              so for whatever is mounted below, too. The path is opened without following a link,
 *              so that what is mounted is what was resolved.
 *
 * The -m file holds records that end in NUL, each a type, a space and a value:
 *     b SOURCE  o PLACE    bind SOURCE to PLACE, read-only
 *     b SOURCE  w PLACE    the same, writable
 *     b SOURCE  x PLACE    read-only, and may be executed from wherever it lies: for bawn's own files, since
 *                          Debian mounts /run noexec. (In its user namespace runsc could not even remount
 *                          the root of a box there.) Needs privilege over the mount of SOURCE.
 *     r DIR        the following names are below this host directory
 *     n GLOB       a name at any depth (fnmatch(3))
 *     p GLOB       a path relative to DIR
 *     k PATH       what may be opened under a masked name: it covers one
 *
 * SIGRTMAX ends the whole cage at once. Every other signal goes to the box through a pipe that runsc
 * hands to init as descriptor 3 (runsc passes signals on only with a terminal).
 *
 * Exit status: runsc's own; 128+n where a signal ended it; 125 where the cage could not be made.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Not <sys/mount.h>: it and <linux/mount.h> exclude each other before glibc 2.37. */
int mount(const char *, const char *, const char *, unsigned long, const void *);

/* linux/seccomp.h of 6.6; older kernels refuse it, and the check is a little slower there. */
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

enum { EXIT_CAGE = 125, CONTROL = 3 };

__attribute__((noreturn))
static void fail(const char *what, const char *which)
{
	fprintf(stderr, "bawn-launch: %s %s: %s\n", what, which, strerror(errno));
	exit(EXIT_CAGE);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t length = strlen(text);
	if (fd < 0 || write(fd, text, length) != (ssize_t)length)
		fail("cannot write", path);
	close(fd);
}

/* ---- mounts and late masks ----------------------------------------------------------------- */

struct rule {
	char type;
	const char *value;
	dev_t dev; /* of the root directory; of the covered file for 'k' */
	ino_t ino;
};

static struct rule *rules;
static size_t rule_count;
static int masking; /* is there any name to hide? */

static struct bind {
	const char *source, *place;
	char mode; /* the record's: o, w, x */
} *binds;
static size_t bind_count;

static void malformed(const char *path)
{
	errno = EINVAL;
	fail("malformed record in", path);
}

static void add_rule(char type, const char *value, const struct stat *st)
{
	rules = reallocarray(rules, rule_count + 1, sizeof *rules);
	if (!rules)
		fail("out of memory for", value);
	rules[rule_count++] = (struct rule){ type, value, st->st_dev, st->st_ino };
}

static void read_cage(const char *path)
{
	FILE *file = fopen(path, "re");
	if (!file)
		fail("cannot read", path);
	struct stat root = { 0 }, st;
	const char *source = NULL;
	char *record = NULL;
	size_t size = 0;
	for (ssize_t length; (length = getdelim(&record, &size, 0, file)) > 0;) {
		const char *value = length > 2 && record[1] == ' ' ? strdup(record + 2) : NULL;
		if (!value)
			malformed(path);
		switch (record[0]) {
		case 'b':
			source = value;
			break;
		case 'o':
		case 'w':
		case 'x':
			binds = reallocarray(binds, bind_count + 1, sizeof *binds);
			if (!binds || !source)
				malformed(path);
			binds[bind_count++] = (struct bind){ source, value, record[0] };
			source = NULL;
			break;
		case 'r':
			if (stat(value, &root) != 0)
				fail("cannot stat", value);
			break;
		case 'k':
			if (stat(value, &st) != 0)
				fail("cannot stat", value);
			add_rule('k', value, &st);
			break;
		case 'n':
		case 'p':
			if (!root.st_ino)
				malformed(path);
			add_rule(record[0], value, &root);
			masking = 1;
			break;
		default:
			malformed(path);
		}
	}
	free(record);
	fclose(file);
}

static int covered_by_mount(int dir, const char *name)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return 0;
	for (size_t i = 0; i < rule_count; i++)
		if (rules[i].type == 'k' && rules[i].dev == st.st_dev && rules[i].ino == st.st_ino)
			return 1;
	return 0;
}

static const char *path_of(int fd, char *buffer, size_t size)
{
	char link[64];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, buffer, size - 1);
	buffer[length < 0 ? 0 : length] = 0;
	return buffer;
}

/* Walks from `dir` upwards to the rule's root; is `name` in `dir` what the rule means? The root is
 * known by device and inode, since runsc's processes see it in a mount namespace of their own. */
static int applies(const struct rule *rule, int dir, const char *name)
{
	char here[PATH_MAX], top[PATH_MAX], relative[2 * PATH_MAX];
	int at = dup(dir), found = 1; /* what cannot be looked at is masked; only the top is not below */
	while (at >= 0) {
		struct stat st, above;
		if (fstat(at, &st) != 0 || (st.st_dev == rule->dev && st.st_ino == rule->ino))
			break;
		int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (up >= 0 && fstat(up, &above) == 0 && above.st_dev == st.st_dev &&
		    above.st_ino == st.st_ino) {
			close(up);
			found = 0;
			break;
		}
		close(at);
		at = up;
	}
	if (found && at >= 0 && rule->type == 'p') {
		size_t length = strlen(path_of(at, top, sizeof top));
		const char *tail = path_of(dir, here, sizeof here) + length;
		snprintf(relative, sizeof relative, "%s%s%s", tail + (*tail == '/'), *tail ? "/" : "",
			 name);
		found = strncmp(top, here, length) != 0 || fnmatch(rule->value, relative, 0) == 0;
	}
	if (at >= 0)
		close(at);
	return found;
}

/* Is `path`, opened relative to descriptor `dirfd` of process `pid`, masked? The cheap test (the
 * name alone) comes first: nearly every open ends there. What cannot be read is masked. */
static int masked(pid_t pid, int dirfd, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char link[64];
	int dir = -1, result = 0;
	if (dirfd == AT_FDCWD)
		return 0; /* runsc's own start: nothing that the box names is opened so */
	for (size_t i = 0; i < rule_count && !result; i++) {
		const struct rule *rule = &rules[i];
		if (rule->type == 'k')
			continue;
		const char *last = strrchr(rule->value, '/');
		if (fnmatch(last ? last + 1 : rule->value, name, 0) != 0)
			continue;
		if (dir < 0) {
			snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, dirfd);
			dir = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
			if (dir < 0 || slash)
				return 1;
		}
		result = applies(rule, dir, name);
	}
	result = result && !covered_by_mount(dir, name);
	if (dir >= 0)
		close(dir);
	return result;
}

/* Copies the string at `address` of process `pid`; 0 where it cannot be read. A page at a time: the
 * string may end just before an unmapped one. */
static int read_string(pid_t pid, unsigned long address, char *into, size_t size)
{
	for (size_t got = 0; got < size;) {
		size_t chunk = 4096 - ((address + got) & 4095);
		if (chunk > size - got)
			chunk = size - got;
		struct iovec here = { into + got, chunk };
		struct iovec there = { (void *)(address + got), chunk };
		ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
		if (n <= 0)
			return 0;
		if (memchr(into + got, 0, n))
			return 1;
		got += n;
	}
	return 0;
}

/* A thread of its own, in blocking calls: a check costs one round trip of two context switches. */
static void *answer(void *argument)
{
	int listener = *(int *)argument;
	char path[PATH_MAX];
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	for (;;) {
		struct seccomp_notif request = { 0 };
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) {
			if (errno == EINTR)
				continue;
			if (errno == ENOENT) { /* the caller was killed, or nobody is left */
				struct pollfd left = { listener, POLLIN, 0 };
				if (poll(&left, 1, -1) >= 0 && !(left.revents & POLLHUP))
					continue;
			}
			return NULL;
		}
		struct seccomp_notif_resp response = { .id = request.id };
		if (read_string(request.pid, request.data.args[1], path, sizeof path) &&
		    !masked(request.pid, (int)request.data.args[0], path))
			response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		else
			response.error = -EACCES;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
	}
}

/* ---- the cage ------------------------------------------------------------------------------ */

static int install_filter(int notify)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fgetxattr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTSUP),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, notify ? SYS_openat : ~0U, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		fail("cannot set", "no-new-privileges");
	int fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			 notify ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0, &program);
	if (fd < 0)
		fail("cannot install", "the seccomp filter");
	return fd;
}

static void send_fd(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof control };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	if (sendmsg(socket, &message, 0) != 1)
		fail("cannot hand over", "the seccomp listener");
}

static int receive_fd(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof control };
	int fd = -1;
	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
	return fd;
}

static void make_binds(void)
{
	for (size_t i = 0; i < bind_count; i++) {
		const struct bind *bind = &binds[i];
		struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
		struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
						       (bind->mode == 'w' ? 0 : MOUNT_ATTR_RDONLY),
					  .attr_clr = bind->mode == 'x' ? MOUNT_ATTR_NOEXEC : 0 };
		char link[64];
		int fd = syscall(SYS_openat2, AT_FDCWD, bind->source, &how, sizeof how);
		if (fd < 0)
			fail("cannot open (a link was put in its way?)", bind->source);
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		if (mount(link, bind->place, NULL, MS_BIND | MS_REC, NULL) != 0)
			fail("cannot mount", bind->source);
		close(fd);
		if (syscall(SYS_mount_setattr, AT_FDCWD, bind->place, AT_RECURSIVE, &attr, sizeof attr) != 0)
			fail("cannot set the mode of the mount of", bind->source);
	}
}

/* As docker's runtime. Does not return. */
static void wrap(char **argv, int hide_net)
{
	if (unshare(CLONE_NEWNS) != 0)
		fail("cannot make", "a mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
		fail("cannot make a slave of", "the mount namespace");
	make_binds();
	if (hide_net && mount("none", "/proc/sys/net", "tmpfs", MS_RDONLY, "size=4k") != 0)
		fail("cannot hide", "/proc/sys/net");
	install_filter(0);
	execv(argv[0], argv);
	fail("cannot run", argv[0]);
}

/* In the child: PID 1 of its namespace. Does not return. */
static void enter(char **argv, const char *user, int notify, int socket, int control, int terminal)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	char byte;
	if (!terminal)
		setpgid(0, 0); /* a terminal's interrupt is for the command in the box, not for runsc */
	if (user) {
		unsigned uid, gid;
		char map[64];
		if (sscanf(user, "%u:%u", &uid, &gid) != 2) {
			errno = EINVAL;
			fail("cannot read", user);
		}
		write_file("/proc/self/setgroups", "deny");
		snprintf(map, sizeof map, "0 %u 1", uid);
		write_file("/proc/self/uid_map", map);
		snprintf(map, sizeof map, "0 %u 1", gid);
		write_file("/proc/self/gid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		fail("cannot make private", "the mount namespace");
	make_binds(); /* before the new /proc: /proc/self is of the old one's namespace */
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
		fail("cannot mount", "/proc in a PID namespace of its own");
	int fd = install_filter(notify);
	if (notify) {
		send_fd(socket, fd);
		/* The parent answers from here on; wait until it holds the listener. */
		if (read(socket, &byte, 1) != 1)
			fail("cannot hear", "the parent");
		close(fd);
	}
	sigset_t none; /* runsc starts with no signal blocked, whatever bawn blocks */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(control, CONTROL);
	execv(argv[0], argv);
	fail("cannot run", argv[0]);
}

int main(int argc, char **argv)
{
	const char *user = NULL, *masks = NULL;
	int option, wrapping = 0, hide_net = 0, terminal = 0, sockets[2], control[2], listener = -1;
	pid_t parent = getppid();
	while ((option = getopt(argc, argv, "+c:u:m:tnw")) != -1) {
		switch (option) {
		case 'c': write_file(optarg, "0"); break;
		case 'u': user = optarg; break;
		case 'm': masks = optarg; break;
		case 't': terminal = 1; break;
		case 'n': hide_net = 1; break;
		case 'w': wrapping = 1; break;
		default: return EXIT_CAGE;
		}
	}
	if (optind >= argc) {
		errno = EINVAL;
		fail("no command", "to run");
	}
	if (masks)
		read_cage(masks);
	if (wrapping)
		wrap(argv + optind, hide_net);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		return EXIT_CAGE;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
		fail("cannot make", "a socket pair");
	if (pipe2(control, O_CLOEXEC | O_NONBLOCK) != 0)
		fail("cannot make", "a pipe");

	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	unsigned long flags = CLONE_NEWPID | CLONE_NEWNS | (user ? CLONE_NEWUSER : 0);
	pid_t child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	if (child < 0)
		fail("cannot make", user ? "user, PID and mount namespaces" : "PID and mount namespaces");
	if (child == 0)
		enter(argv + optind, user, masking, sockets[1], control[0], terminal);
	close(sockets[1]);
	if (masking)
		listener = receive_fd(sockets[0]); /* -1: the child is gone; its status says why */
	if (listener >= 0) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, answer, &listener) != 0)
			fail("cannot start", "the mask thread");
		if (write(sockets[0], "", 1) != 1)
			fail("cannot answer", "the child");
	}
	for (;;) {
		siginfo_t info;
		int number = sigwaitinfo(&all, &info), status;
		if (number == SIGCHLD && waitpid(child, &status, WNOHANG) == child)
			return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		if (number == SIGRTMAX) /* bawn's "now": the kernel ends the whole namespace */
			kill(child, SIGKILL);
		else if (number > 0 && number != SIGCHLD && !(terminal && info.si_code == SI_KERNEL)) {
			unsigned char byte = number;
			if (write(control[1], &byte, 1) != 1)
				fprintf(stderr, "bawn-launch: signal %d is lost: %s\n", number, strerror(errno));
		}
	}
}
