/*
 * way: the loopback end of the one way out.
 *
 * The box has no network; what it has is one Unix socket, behind which bawn's proxy decides. Three
 * things listen here and lead there:
 *
 *   127.0.0.1:3128     for clients that know of a proxy. A connection is joined to a fresh one of the
 *                      socket, as it is; what it says is the proxy's to judge.
 *   127.0.0.1:53       a resolver, UDP and TCP. It asks the proxy about a name (RESOLVE) and forwards no
 *                      question. A listed name gets an address of its own from 127.64/10.
 *   127.64.x.y:PORT    the address of a listed name, at its listed ports: a connection is announced to
 *                      the proxy by name (CONNECT) and joined, or reset.
 *
 * One listener for each name and port, on exactly that address, opened when the name is asked for. (A
 * wildcard listener for each port would need fewer descriptors, but take the port from the box's own
 * servers: measured, 0.0.0.0:443 excludes 127.0.0.1:443 here. So does the exact one only 0.0.0.0:443.)
 * No connection reaches an address that has no name, or a port that is not of the name.
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
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	PROXY_PORT = 3128,
	CONNECTIONS = 1024,
	NAMES = 4096,
	LISTENERS = 4096, /* the first is the proxy port's */
	ASKS = 256,  /* questions to the proxy under way */
	WAITS = 256, /* questions of the box that wait for them */
	STREAMS = 32, /* connections to the resolver */
	ROOM = 65536, /* what one direction of a connection may hold back */
	HEAD = 8192,
	MESSAGE = 1024, /* a question over TCP */
	BACKLOG = 512,
	EVENTS = 64,
	TURNS = 64, /* connections, or questions, taken in one round */
	SECONDS_CONNECT = 30,
	SECONDS_ASK = 4, /* before the client gives up: resolv.conf says 5 */
	SECONDS_STREAM = 30,
	SECONDS_LEAVE = 30, /* silent, for a client that has been told of its peer's end */
};
static const uint32_t FIRST_ADDRESS = 0x7f400001; /* 127.64.0.1 */

/* What an event is about: kind, index and a side or port in the low half, a generation in the high
 * one, so that an event of something closed in the same batch is known to be late. */
enum kind { LISTENER, CLIENT, UDP, STREAM_LISTENER, STREAM, ASK };

struct flow {
	unsigned at, length; /* what is held back, in its room */
	unsigned char ended, told; /* its source has ended; its destination knows */
};

/* flow[0] is from the client (fd[0]) to the proxy (fd[1]), flow[1] the other way. */
struct connection {
	enum { FREE, HEAD_AWAITED, JOINED } state;
	int fd[2];
	uint32_t watched[2];
	struct flow flow[2];
	unsigned char deaf; /* the proxy's end takes nothing more: what the client says is dropped */
	unsigned char roomy; /* its rooms have been written to */
	time_t deadline; /* 0 for none */
	unsigned generation;
};

struct listener {
	int fd; /* -1: closed */
	int name; /* -1: clients speak to the proxy itself */
	unsigned port, generation;
	int next; /* in the queue of those that may have connections */
	unsigned char queued;
};

struct name {
	char text[NAME_SIZE];
	int count;
	int listener[PORTS];
};

struct ask {
	char name[NAME_SIZE]; /* "" for a free one */
	int fd;
	unsigned got, generation;
	time_t deadline;
	char head[HEAD];
};

struct wait {
	int used, ask, stream; /* stream -1: UDP, to `from` */
	unsigned generation; /* of the stream */
	struct sockaddr_in from;
	struct question question;
};

struct stream {
	int fd, used, ended, pending;
	unsigned got, generation;
	time_t deadline;
	unsigned char data[2 + MESSAGE];
};

static struct tables {
	struct connection connection[CONNECTIONS];
	int idle[CONNECTIONS], idle_count; /* a stack: the rooms used last are used again */
	struct name name[NAMES];
	struct listener listener[LISTENERS];
	struct ask ask[ASKS];
	struct wait wait[WAITS];
	struct stream stream[STREAMS];
	char scratch[ROOM];
	char room[CONNECTIONS][2][ROOM];
} *t;

static struct sockaddr_un proxy = { .sun_family = AF_UNIX };
static int loop, udp, stream_listener; /* descriptors */
static int names, timed, asking, waiting;
static int first = -1, last = -1; /* of the queue of listeners */
static int udp_ready, stuck; /* there may be questions; something is used up until the next second */
static int connections_max, asks_max, listeners_max;
static time_t now;

/* ---- small things ---------------------------------------------------------------------------- */

static uint64_t tag(enum kind kind, unsigned index, unsigned low, unsigned generation)
{
	return (uint64_t)generation << 32 | (uint64_t)kind << 28 | (uint64_t)index << 8 | low;
}

static int watch(int epoll, int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { events, { .u64 = data } };
	return epoll_ctl(epoll, op, fd, &event);
}

static struct sockaddr_in address_of(uint32_t address, unsigned port)
{
	return (struct sockaddr_in){ AF_INET, htons(port), { htonl(address) }, { 0 } };
}

/* A nonblocking socket on that address, listening where it is a stream; -1 and errno. */
static int open_at(uint32_t address, unsigned port, int type)
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

static int dial(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&proxy, sizeof proxy) == 0)
		return fd;
	int error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return -1;
}

static int say(int fd, const char *text, size_t length)
{
	return send(fd, text, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static void close_with_reset(int fd)
{
	struct linger hard = { 1, 0 };
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	close(fd);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void drop(struct connection *c, int reset)
{
	unsigned index = c - t->connection;
	if (reset)
		close_with_reset(c->fd[0]);
	else
		close(c->fd[0]);
	close(c->fd[1]);
	if (c->roomy)
		madvise(t->room[index], sizeof t->room[index], MADV_DONTNEED);
	*c = (struct connection){ .generation = c->generation + 1 };
	t->idle[t->idle_count++] = index;
}

/* Watches for what can be done now, and for nothing else: an end without a use is taken out, since it
 * would report its hang-up for ever. 0 where that cannot be. */
static int settle(struct connection *c)
{
	for (int side = 0; side < 2; side++) {
		const struct flow *out = &c->flow[side], *in = &c->flow[!side];
		uint32_t wanted = (!out->length && !out->ended && (c->state == JOINED || side) ? EPOLLIN : 0) |
				  (in->length && c->state == JOINED ? EPOLLOUT : 0);
		if (wanted == c->watched[side])
			continue;
		int op = !wanted ? EPOLL_CTL_DEL : c->watched[side] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
		if (watch(loop, op, c->fd[side], wanted, tag(CLIENT, c - t->connection, side, c->generation)) != 0)
			return 0;
		c->watched[side] = wanted;
	}
	return 1;
}

/* The proxy's end is gone. What it has said still reaches the client; what the client says does not count. */
static void deafen(struct connection *c)
{
	c->deaf = 1;
	c->flow[0].length = 0;
}

/* Writes to the destination of a flow: how much it took, -1 where it is gone. */
static ssize_t put(struct connection *c, int from, const char *data, size_t length)
{
	if (from == 0 && c->deaf)
		return length;
	ssize_t sent = send(c->fd[!from], data, length, MSG_NOSIGNAL);
	if (sent >= 0)
		return sent;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	if (from == 1)
		return -1;
	deafen(c);
	return length;
}

/* Moves what can be moved from side `from` in one read. 0 where the connection must be reset. */
static int move(struct connection *c, int from)
{
	struct flow *flow = &c->flow[from];
	char *room = t->room[c - t->connection][from];
	if (flow->length) {
		ssize_t sent = put(c, from, room + flow->at, flow->length);
		if (sent < 0)
			return 0;
		if (from == 1 || !c->deaf) {
			flow->at += sent;
			flow->length -= sent;
		}
	} else if (!flow->ended) {
		ssize_t got = recv(c->fd[from], t->scratch, ROOM, 0);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return 1;
		if (got < 0 && from == 0)
			return 0;
		/* An error of the proxy's end: it closed with something unread. That is an end, and no more. */
		if (got < 0)
			deafen(c);
		if (got <= 0) {
			flow->ended = 1;
		} else {
			ssize_t sent = put(c, from, t->scratch, got);
			if (sent < 0)
				return 0;
			if (sent < got) {
				memcpy(room, t->scratch + sent, got - sent);
				c->roomy = 1;
				flow->at = 0;
				flow->length = got - sent;
			}
		}
	}
	if (flow->ended && !flow->length && !flow->told) {
		flow->told = 1;
		shutdown(c->fd[!from], SHUT_WR);
	}
	return 1;
}

/* After something has moved: is it over, or what comes next?
 *
 * Whether a proxy that says no more still listens cannot be seen (the Sentry reports no hang-up of a
 * socket of the host), only felt by writing. So a client whose peer has ended may go on, but not be silent
 * for long; and one in the middle of saying something is not reset, which would take back what it has
 * not read: why nobody listens. */
static void go_on(struct connection *c)
{
	const struct flow *out = &c->flow[0], *back = &c->flow[1];
	if (back->told && (out->told || (c->deaf && out->ended)))
		return drop(c, 0);
	if (back->told) {
		c->deadline = now + SECONDS_LEAVE;
		timed = 1;
	}
	if (!settle(c))
		drop(c, 1);
}

/* The answer to CONNECT, into the room of what goes to the client. */
static void read_connect_answer(struct connection *c)
{
	struct flow *flow = &c->flow[1];
	char *room = t->room[c - t->connection][1];
	ssize_t got = recv(c->fd[1], room + flow->at, HEAD - flow->at, 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->roomy = 1;
	if (got <= 0)
		return drop(c, 1);
	size_t whole = flow->at + got, head = head_length(room, whole);
	flow->at = whole; /* while the head is awaited: how much of it is there */
	if (head == 0 ? whole == HEAD : head_status(room, head) != 200)
		return drop(c, 1);
	if (head == 0)
		return;
	c->state = JOINED;
	c->deadline = 0;
	flow->at = head;
	flow->length = whole - head;
	if (!move(c, 1) || !move(c, 0))
		return drop(c, 1);
	go_on(c);
}

static void on_connection(struct connection *c, int side, uint32_t events)
{
	if (c->state == HEAD_AWAITED)
		return read_connect_answer(c);
	/* An event may be for both of the directions that an end has a part in. */
	if (c->flow[!side].length && !move(c, !side))
		return drop(c, 1);
	if (events & ~EPOLLOUT && !c->flow[side].length && !move(c, side))
		return drop(c, 1);
	go_on(c);
}

/* Takes a client in; `name` NULL for one that speaks to the proxy itself. */
static void admit(int client, const struct name *name, unsigned port)
{
	char text[2 * NAME_SIZE + 128];
	int one = 1, upstream = dial();
	if (upstream < 0)
		return close_with_reset(client);
	if (name) {
		int length = snprintf(text, sizeof text,
				      "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\nBawn-Way: transparent\r\n\r\n",
				      name->text, port, name->text, port);
		if (!say(upstream, text, length)) {
			close(upstream);
			return close_with_reset(client);
		}
	}
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	struct connection *c = &t->connection[t->idle[--t->idle_count]];
	c->state = name ? HEAD_AWAITED : JOINED;
	c->fd[0] = client;
	c->fd[1] = upstream;
	c->deadline = name ? now + SECONDS_CONNECT : 0;
	timed |= name != NULL;
	if (!settle(c))
		drop(c, 1);
}

static void queue(struct listener *l)
{
	int index = l - t->listener;
	if (l->queued)
		return;
	l->queued = 1;
	l->next = -1;
	if (first < 0)
		first = index;
	else
		t->listener[last].next = index;
	last = index;
}

/* Takes clients in, in the order in which their listeners became ready, while there is room. */
static void take_clients(void)
{
	for (int turn = 0; turn < TURNS && first >= 0 && t->idle_count && !stuck; turn++) {
		struct listener *l = &t->listener[first];
		first = l->next;
		l->queued = 0;
		int client = l->fd < 0 ? -1 : accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (client >= 0)
			admit(client, l->name < 0 ? NULL : &t->name[l->name], l->port);
		else if (l->fd < 0 || errno == EAGAIN)
			continue; /* nothing more; the next one is told */
		else if (errno != ECONNABORTED && errno != EINTR)
			stuck = timed = 1;
		queue(l);
	}
}

/* ---- names ----------------------------------------------------------------------------------- */

static void shut(struct name *name, int at)
{
	struct listener *l = &t->listener[name->listener[at]];
	close(l->fd);
	l->fd = -1;
	l->generation++;
	name->listener[at] = name->listener[--name->count];
}

/* Listens at this address and port; 0 where that cannot be had. */
static int listen_for(int name, uint32_t address, unsigned port)
{
	struct listener *l = t->listener, *end = t->listener + listeners_max;
	while (l < end && (l->fd >= 0 || l->queued))
		l++;
	if (l == end || (l->fd = open_at(address, port, SOCK_STREAM)) < 0)
		return 0;
	l->name = name;
	l->port = port;
	if (watch(loop, EPOLL_CTL_ADD, l->fd, EPOLLIN | EPOLLET, tag(LISTENER, l - t->listener, 0, l->generation)) != 0) {
		close(l->fd);
		l->fd = -1;
		return 0;
	}
	if (name >= 0)
		t->name[name].listener[t->name[name].count++] = l - t->listener;
	return 1;
}

static struct name *find_name(const char *text)
{
	for (int i = 0; i < names; i++)
		if (!strcmp(t->name[i].text, text))
			return &t->name[i];
	return NULL;
}

static int listens_at(const struct name *name, unsigned port)
{
	for (int i = 0; i < name->count; i++)
		if (t->listener[name->listener[i]].port == port)
			return 1;
	return 0;
}

/* Makes these the ports of the name: 0 where one of them cannot be had. (A server of the box itself on
 * 0.0.0.0 has it, or there are too many. The name leads nowhere then, rather than to that.) */
static int set_ports(int index, const uint16_t *port, int count)
{
	struct name *name = &t->name[index];
	for (int i = name->count - 1; i >= 0; i--) {
		int kept = 0;
		for (int k = 0; k < count; k++)
			kept |= port[k] == t->listener[name->listener[i]].port;
		if (!kept)
			shut(name, i);
	}
	for (int k = 0; k < count; k++)
		if (!listens_at(name, port[k]) && !listen_for(index, FIRST_ADDRESS + index, port[k]))
			return 0;
	return 1;
}

static uint32_t address_for(const char *text, const uint16_t *port, int count)
{
	struct name *name = find_name(text);
	if (!name && names == NAMES)
		return 0;
	if (!name) {
		name = &t->name[names++];
		strcpy(name->text, text);
	}
	return set_ports(name - t->name, port, count) ? FIRST_ADDRESS + (name - t->name) : 0;
}

/* ---- the resolver ---------------------------------------------------------------------------- */

static void close_stream(struct stream *s)
{
	close(s->fd);
	s->used = 0;
	s->generation++;
}

/* To the client; where that does not take it at once, it is not waited for. */
static void answer(const struct sockaddr_in *from, struct stream *s, const struct question *question, int code,
		   uint32_t address)
{
	unsigned char out[2 + ANSWER_SIZE];
	size_t length = write_answer(question, code, address, out + 2);
	out[0] = length >> 8;
	out[1] = length;
	if (!s)
		sendto(udp, out + 2, length, MSG_NOSIGNAL, (const struct sockaddr *)from, sizeof *from);
	else if (!say(s->fd, (char *)out, length + 2))
		shutdown(s->fd, SHUT_RDWR); /* seen, and closed, as the end of the stream */
}

static void end_ask(struct ask *a, int code, uint32_t address)
{
	for (int i = 0; i < WAITS; i++) {
		struct wait *w = &t->wait[i];
		if (!w->used || w->ask != a - t->ask)
			continue;
		w->used = 0;
		waiting--;
		struct stream *s = w->stream < 0 ? NULL : &t->stream[w->stream];
		if (s && s->generation != w->generation)
			continue;
		answer(&w->from, s, &w->question, code, address);
		if (s && --s->pending == 0 && s->ended)
			close_stream(s);
	}
	close(a->fd);
	a->name[0] = 0;
	a->generation++;
	asking--;
}

/* A question to the proxy about this name, or the one that is under way; NULL where there is none. */
static struct ask *ask_about(const char *name)
{
	struct ask *a = NULL;
	char text[2 * NAME_SIZE + 128];
	for (int i = 0; i < asks_max; i++) {
		if (!strcmp(t->ask[i].name, name))
			return &t->ask[i];
		if (!a && !t->ask[i].name[0])
			a = &t->ask[i];
	}
	if (!a || (a->fd = dial()) < 0)
		return NULL;
	int length = snprintf(text, sizeof text, "RESOLVE %s HTTP/1.1\r\nHost: %s\r\nBawn-Way: resolve\r\n\r\n", name, name);
	if (!say(a->fd, text, length) ||
	    watch(loop, EPOLL_CTL_ADD, a->fd, EPOLLIN, tag(ASK, a - t->ask, 0, a->generation)) != 0) {
		close(a->fd);
		return NULL;
	}
	strcpy(a->name, name);
	asking++;
	a->got = 0;
	a->deadline = now + SECONDS_ASK;
	timed = 1;
	return a;
}

static void on_ask(struct ask *a)
{
	uint16_t port[PORTS];
	ssize_t got = recv(a->fd, a->head + a->got, HEAD - a->got, 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0)
		return end_ask(a, SERVFAIL, 0);
	a->got += got;
	size_t head = head_length(a->head, a->got);
	if (head == 0 && a->got < HEAD)
		return;
	int status = head ? head_status(a->head, head) : -1;
	int count = status == 200 ? head_ports(a->head, head, port) : -1;
	uint32_t address = count > 0 ? address_for(a->name, port, count) : 0;
	if (status == 403) { /* the policy may have changed */
		struct name *name = find_name(a->name);
		while (name && name->count)
			shut(name, name->count - 1);
	}
	end_ask(a, address ? NOERROR : status == 403 ? NXDOMAIN : SERVFAIL, address);
}

static void on_question(const unsigned char *packet, size_t length, const struct sockaddr_in *from, struct stream *s)
{
	struct question question;
	int code = read_question(packet, length, &question);
	if (code == IGNORE)
		return;
	if (code != NOERROR || is_local(&question))
		return answer(from, s, &question, code, 0);
	struct wait *w = t->wait, *end = t->wait + WAITS;
	while (w < end && w->used)
		w++;
	struct ask *a = w < end ? ask_about(question.name) : NULL;
	if (!a)
		return answer(from, s, &question, SERVFAIL, 0);
	*w = (struct wait){ 1, a - t->ask, s ? s - t->stream : -1, s ? s->generation : 0, { 0 }, question };
	if (from)
		w->from = *from;
	waiting++;
	if (s)
		s->pending++;
}

static int may_ask(void)
{
	return asking < asks_max && waiting < WAITS;
}

static void take_questions(void)
{
	for (int turn = 0; turn < TURNS && udp_ready && may_ask(); turn++) {
		struct sockaddr_in from;
		socklen_t size = sizeof from;
		ssize_t got = recvfrom(udp, t->scratch, MESSAGE, 0, (struct sockaddr *)&from, &size);
		if (got >= 0)
			on_question((unsigned char *)t->scratch, got, &from, NULL);
		else if (errno == EAGAIN)
			udp_ready = 0;
	}
}

static void accept_stream(void)
{
	int fd = accept4(stream_listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct stream *s = t->stream, *end = t->stream + STREAMS;
	if (fd < 0)
		return;
	while (s < end && s->used)
		s++;
	if (s == end || watch(loop, EPOLL_CTL_ADD, fd, EPOLLIN, tag(STREAM, s - t->stream, 0, s->generation)) != 0)
		return close_with_reset(fd);
	*s = (struct stream){ .fd = fd, .used = 1, .generation = s->generation, .deadline = now + SECONDS_STREAM };
	timed = 1;
}

/* Questions over TCP have their length in front (RFC 1035 4.2.2), and may come in one go (RFC 7766). */
static void on_stream(struct stream *s)
{
	ssize_t got = recv(s->fd, s->data + s->got, sizeof s->data - s->got, 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got < 0 || (got == 0 && !s->pending))
		return close_stream(s);
	if (got == 0) { /* half closed: it still reads */
		s->ended = 1;
		epoll_ctl(loop, EPOLL_CTL_DEL, s->fd, NULL);
		return;
	}
	s->got += got;
	s->deadline = now + SECONDS_STREAM;
	unsigned at = 0;
	while (s->got - at >= 2) {
		unsigned length = s->data[at] << 8 | s->data[at + 1];
		if (length > MESSAGE)
			return close_stream(s);
		if (s->got - at - 2 < length)
			break;
		on_question(s->data + at + 2, length, NULL, s);
		at += 2 + length;
	}
	memmove(s->data, s->data + at, s->got -= at);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Ends what is late, once a second while there is anything that can be. */
static void end_the_late(void)
{
	timed = stuck = 0;
	for (int i = 0; i < CONNECTIONS; i++) {
		struct connection *c = &t->connection[i];
		if (c->deadline && c->deadline < now)
			drop(c, c->state == HEAD_AWAITED);
		timed |= c->deadline != 0;
	}
	for (int i = 0; i < ASKS; i++) {
		if (t->ask[i].name[0] && t->ask[i].deadline < now)
			end_ask(&t->ask[i], SERVFAIL, 0);
		timed |= t->ask[i].name[0] != 0;
	}
	for (int i = 0; i < STREAMS; i++) {
		if (t->stream[i].used && t->stream[i].deadline < now)
			close_stream(&t->stream[i]);
		timed |= t->stream[i].used;
	}
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
		int more = (udp_ready && may_ask()) || (first >= 0 && t->idle_count && !stuck);
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
	connections_max = left / 4 < CONNECTIONS ? left / 4 : CONNECTIONS;
	asks_max = left / 8 < ASKS ? left / 8 : ASKS;
	listeners_max = left - 2 * connections_max - asks_max;
	listeners_max = listeners_max < LISTENERS ? listeners_max : LISTENERS;
}

const char *way_open(const char *socket_path)
{
	const uint32_t here = INADDR_LOOPBACK;
	if (strlen(socket_path) >= sizeof proxy.sun_path) {
		errno = ENAMETOOLONG;
		return "the proxy's socket";
	}
	strcpy(proxy.sun_path, socket_path);
	int reached = dial();
	if (reached < 0)
		return "the proxy's socket (under docker: is the runtime of this bawn's `setup docker`?)";
	close(reached);
	t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t == MAP_FAILED)
		return "memory";
	share();
	for (int i = connections_max - 1; i >= 0; i--)
		t->idle[t->idle_count++] = i;
	for (int i = 0; i < LISTENERS; i++)
		t->listener[i].fd = -1;
	if ((loop = epoll_create1(EPOLL_CLOEXEC)) < 0)
		return "epoll";
	if (!listen_for(-1, here, PROXY_PORT))
		return "127.0.0.1:3128";
	if ((udp = open_at(here, 53, SOCK_DGRAM)) < 0 || (stream_listener = open_at(here, 53, SOCK_STREAM)) < 0)
		return "127.0.0.1:53";
	if (watch(loop, EPOLL_CTL_ADD, udp, EPOLLIN | EPOLLET, tag(UDP, 0, 0, 0)) != 0 ||
	    watch(loop, EPOLL_CTL_ADD, stream_listener, EPOLLIN, tag(STREAM_LISTENER, 0, 0, 0)) != 0)
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
