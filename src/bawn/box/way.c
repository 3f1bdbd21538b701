/*
 * way: the loopback end of the one way out.
 *
 * The box has no network; what it has is one Unix socket, behind which bawn's proxy decides (in bridge
 * mode, one address and port that the wall lets through). Three things listen here and lead there:
 *
 *   127.0.0.1:3128     for clients that know of a proxy. A connection is joined to a fresh one of the
 *                      socket, as it is; what it says is the proxy's to judge.
 *   127.0.0.1:53       a resolver, UDP and TCP. It asks the proxy about a name (RESOLVE) and forwards no
 *                      question. A listed name gets an address of its own from 127.64/10.
 *   127.64.x.y:PORT    the address of a listed name, at its listed ports: a connection is announced to
 *                      the proxy by name (CONNECT) and joined, or reset.
 *
 * One listener for each name and port, on exactly that address (gVisor binds any of 127/8, and ports below
 * 1024 without a capability), opened when the name is asked for. A wildcard listener for each port would
 * need fewer descriptors, but exclude the box's own servers from 127.0.0.1 at that port, and answer
 * there where nobody should: measured. The exact one excludes at most a server on 0.0.0.0 that does not set
 * SO_REUSEADDR. So the kernel refuses an address that has no name, and a port that is not of the name.
 *
 * None of this is the wall: the command may speak to the socket itself, and says there whatever it
 * likes. The proxy decides on each connection anew.
 *
 * One thread of PID 1, beside the one that reaps: connect(2) to a Unix socket waits where the proxy does
 * not accept, and signals must not wait with it. A process of its own would cost the start a fork
 * (5 ms), and could be killed or traced by the command with the box going on.
 *
 * Everything is bounded: descriptors by RLIMIT_NOFILE, shared out in `share`; memory by the tables, which
 * are mapped once and become real as they are used; work by level-triggered epoll, one read at a time.
 * What listens is edge-triggered and kept in a queue until it is empty, so that what cannot be taken yet waits
 * in the kernel. (Taking listeners out while all is busy would cost a call for each of them.)
 */
#define _GNU_SOURCE
#include "way.h"
#include "way_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct tables *t;
int loop, timed;
time_t now;
/* Where the proxy is: behind a Unix socket, or in bridge mode at the one address that the wall lets through. */
static union { struct sockaddr any; struct sockaddr_un local; struct sockaddr_in bridge; } proxy;
static socklen_t proxy_size;

uint64_t tag(enum kind kind, unsigned index, unsigned low, unsigned generation)
{
	return (uint64_t)generation << 32 | (uint64_t)kind << 28 | (uint64_t)index << 8 | low;
}

int watch(int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { events, { .u64 = data } };
	return epoll_ctl(loop, op, fd, &event);
}

static struct sockaddr_in address_of(uint32_t address, unsigned port)
{
	return (struct sockaddr_in){ AF_INET, htons(port), { htonl(address) }, { 0 } };
}

int open_at(uint32_t address, unsigned port, int type)
{
	struct sockaddr_in at = address_of(address, port);
	int one = 1, fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && (type != SOCK_STREAM || listen(fd, BACKLOG) == 0))
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

int dial(void)
{
	/* On the bridge a wall that has closed answers nothing: the wait is short. */
	const struct timeval patience = { DIAL, 0 };
	int at_once = proxy.any.sa_family == AF_UNIX ? SOCK_NONBLOCK : 0;
	int fd = socket(proxy.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | at_once, 0);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
	    connect(fd, &proxy.any, proxy_size) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
		return fd;
	int error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return -1;
}

int say(int fd, const char *text, size_t length)
{
	return send(fd, text, length, MSG_NOSIGNAL) == (ssize_t)length;
}

void close_with_reset(int fd)
{
	struct linger hard = { 1, 0 };
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	close(fd);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Once a second while there is anything that can be late. */
static void end_the_late(void)
{
	timed = 0;
	join_late();
	resolve_late();
}

static void dispatch(uint64_t data, uint32_t events)
{
	unsigned index = data >> 8 & 0xfffff, generation = data >> 32;
	switch ((enum kind)(data >> 28 & 15)) {
	case LISTENER:
		if (t->listener[index].fd >= 0 && t->listener[index].generation == generation)
			queue(&t->listener[index]);
		return;
	case UDP:
		udp_ready = 1;
		return;
	case STREAM_LISTENER:
		return accept_stream();
	case STREAM:
		if (t->stream[index].used && t->stream[index].generation == generation)
			on_stream(&t->stream[index]);
		return;
	case ASK:
		if (t->ask[index].name[0] && t->ask[index].generation == generation)
			on_ask(&t->ask[index]);
		return;
	case CLIENT:
		if (t->connection[index].state != FREE && t->connection[index].generation == generation)
			on_connection(&t->connection[index], data & 1, events);
		return;
	}
}

static void *serve(void *unused)
{
	struct epoll_event event[EVENTS];
	time_t looked = 0;
	for (;;) {
		struct timespec clock;
		int more = (udp_ready && may_ask()) || may_take();
		int count = epoll_wait(loop, event, EVENTS, more ? 0 : timed ? 1000 : -1);
		clock_gettime(CLOCK_MONOTONIC, &clock);
		now = clock.tv_sec + 1; /* never 0, which is no time */
		for (int i = 0; i < count; i++)
			dispatch(event[i].data.u64, event[i].events);
		take_questions();
		take_clients();
		if (timed && now != looked)
			end_the_late();
		looked = now;
	}
	return unused;
}

/* Of the descriptors that this process may have: a quarter for connections (two each), an eighth
 * for questions, what is left for listeners. */
static void share(void)
{
	struct rlimit files = { 256, 256 };
	getrlimit(RLIMIT_NOFILE, &files);
	long left = (files.rlim_cur > 1 << 20 ? 1 << 20 : (long)files.rlim_cur) - 16 - STREAMS;
	left = left < 32 ? 32 : left;
	int connections = left / 4 < CONNECTIONS ? left / 4 : CONNECTIONS;
	asks_max = left / 8 < ASKS ? left / 8 : ASKS;
	listeners_max = left - 2 * connections - asks_max;
	listeners_max = listeners_max < LISTENERS ? listeners_max : LISTENERS;
	for (int i = connections - 1; i >= 0; i--)
		t->idle[t->idle_count++] = i;
}

/* "/path/of/a/socket" or "ADDRESS:PORT", an IPv4 literal: there is no DNS here. 0, or -1 and errno. */
static int find_proxy(const char *place)
{
	char address[INET_ADDRSTRLEN];
	int port, end = 0;
	errno = EINVAL;
	if (*place == '/') {
		proxy.local.sun_family = AF_UNIX;
		proxy_size = sizeof proxy.local;
		errno = ENAMETOOLONG;
		return strlen(place) < sizeof proxy.local.sun_path ? (strcpy(proxy.local.sun_path, place), 0) : -1;
	}
	if (sscanf(place, "%15[0-9.]:%5d%n", address, &port, &end) != 2 || place[end] || port < 1 || port > 65535)
		return -1;
	proxy.bridge.sin_family = AF_INET;
	proxy.bridge.sin_port = htons(port);
	proxy_size = sizeof proxy.bridge;
	return inet_pton(AF_INET, address, &proxy.bridge.sin_addr) == 1 ? 0 : -1;
}

const char *way_open(const char *place)
{
	const uint32_t here = INADDR_LOOPBACK;
	if (find_proxy(place) != 0)
		return "the proxy's address";
	int reached = dial();
	if (reached < 0)
		return *place == '/' ? "the proxy's socket (under docker: is the runtime of this bawn's `setup docker`?)"
		                     : "the proxy's port on the bridge";
	close(reached);
	t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t == MAP_FAILED)
		return "memory";
	share();
	for (int i = 0; i < LISTENERS; i++)
		t->listener[i].fd = -1;
	if ((loop = epoll_create1(EPOLL_CLOEXEC)) < 0)
		return "epoll";
	if (!listen_for(-1, here, PROXY_PORT))
		return "127.0.0.1:3128";
	if ((udp = open_at(here, 53, SOCK_DGRAM)) < 0 || (stream_listener = open_at(here, 53, SOCK_STREAM)) < 0)
		return "127.0.0.1:53";
	if (watch(EPOLL_CTL_ADD, udp, EPOLLIN | EPOLLET, tag(UDP, 0, 0, 0)) != 0 ||
	    watch(EPOLL_CTL_ADD, stream_listener, EPOLLIN, tag(STREAM_LISTENER, 0, 0, 0)) != 0)
		return "epoll";
	return NULL;
}

int way_start(void)
{
	pthread_t thread;
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	return pthread_create(&thread, &small, serve, NULL);
}
