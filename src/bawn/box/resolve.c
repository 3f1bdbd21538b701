/*
 * resolve: the names of the box. A listed one has an address of its own and listens there at its listed
 * ports; what is listed, the proxy is asked anew for each question (or for several at once).
 */
#define _GNU_SOURCE
#include "way_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int listeners_max, asks_max, udp, stream_listener, udp_ready;
static int names, asking, waiting;

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
int listen_for(int name, uint32_t address, unsigned port)
{
	struct listener *l = t->listener, *end = t->listener + listeners_max;
	while (l < end && (l->fd >= 0 || l->queued))
		l++;
	if (l == end || (l->fd = open_at(address, port, SOCK_STREAM)) < 0)
		return 0;
	l->name = name;
	l->port = port;
	if (watch(EPOLL_CTL_ADD, l->fd, EPOLLIN | EPOLLET, tag(LISTENER, l - t->listener, 0, l->generation)) != 0) {
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
	    watch(EPOLL_CTL_ADD, a->fd, EPOLLIN, tag(ASK, a - t->ask, 0, a->generation)) != 0) {
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

void on_ask(struct ask *a)
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

int may_ask(void)
{
	return asking < asks_max && waiting < WAITS;
}

void take_questions(void)
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

void accept_stream(void)
{
	int fd = accept4(stream_listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct stream *s = t->stream, *end = t->stream + STREAMS;
	if (fd < 0)
		return;
	while (s < end && s->used)
		s++;
	if (s == end || watch(EPOLL_CTL_ADD, fd, EPOLLIN, tag(STREAM, s - t->stream, 0, s->generation)) != 0)
		return close_with_reset(fd);
	*s = (struct stream){ .fd = fd, .used = 1, .generation = s->generation, .deadline = now + SECONDS_STREAM };
	timed = 1;
}

/* Questions over TCP have their length in front (RFC 1035 4.2.2), and may come in one go (RFC 7766). */
void on_stream(struct stream *s)
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

void resolve_late(void)
{
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
