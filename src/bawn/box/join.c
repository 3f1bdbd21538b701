/*
 * join: connections of the box joined to connections of the proxy, both directions, with what each end
 * says of its own end carried to the other. What one end does not take yet is held back, 64 KiB at most, and
 * no more is read for it.
 */
#define _GNU_SOURCE
#include "way_parts.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int first = -1, last = -1; /* of the queue of listeners */
static int stuck; /* something is used up: nobody is taken in until the next second */

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
		if (watch(op, c->fd[side], wanted, tag(CLIENT, c - t->connection, side, c->generation)) != 0)
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

void on_connection(struct connection *c, int side, uint32_t events)
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

void queue(struct listener *l)
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

int may_take(void)
{
	return first >= 0 && t->idle_count && !stuck;
}

/* Takes clients in, in the order in which their listeners became ready, while there is room. */
void take_clients(void)
{
	for (int turn = 0; turn < TURNS && may_take(); turn++) {
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

void join_late(void)
{
	stuck = 0;
	for (int i = 0; i < CONNECTIONS; i++) {
		struct connection *c = &t->connection[i];
		if (c->deadline && c->deadline < now)
			drop(c, c->state == HEAD_AWAITED);
		timed |= c->deadline != 0;
	}
}
