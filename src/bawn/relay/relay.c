/*
 * relay: the sockets of the way out. It moves bytes and does what it is told; it decides and parses
 * nothing of what passes.
 *
 *     relay UID CONTROL MAXIMUM HEAD IDLE LISTENER...
 *
 *     UID       who to be, where it is started by root; 0: nobody else
 *     CONTROL   a connected Unix socket: frames to and from the proxy, which decides
 *     MAXIMUM   connections at a time; more wait in the listeners' queues
 *     HEAD      seconds for a connection to be joined or ended
 *     IDLE      seconds without a byte after which a joined connection ends
 *     LISTENER  listening sockets
 *
 * A frame is a struct frame and what follows it. From here to the proxy:
 *     DATA      what the client sent, once for each READ (the first goes without asking); nothing: its end
 *     DIALLED   value: the number of the address that answered, or -1 (then an errno follows)
 *     LATE      the time for the head is over, or that for the dialling
 *     ENDED     value: enum how; a struct moved follows. The connection is gone.
 * From the proxy to here:
 *     READ      the client's next bytes are wanted
 *     CLIENT, SERVER  bytes for either
 *     DIAL      value: the port; struct addresses follow. One of them, the first to answer: RFC 8305
 *     JOIN      value: bytes that the client may still send. From now on bytes pass by themselves.
 *     END       value: 0 in peace, once the client has got everything; 1 with a reset
 *     DRAIN     no connection is accepted any more
 *
 * When CONTROL closes, everything ends: without the proxy there is no way out.
 *
 * splice(2) moves pages through a pipe, which a direction has only while bytes are in it: an idle
 * tunnel costs two descriptors and one struct. A reader that is slow leaves its pipe full, and then
 * nobody reads for it: memory is bounded by what the kernel gives a pipe and two sockets.
 * One event moves a bounded number of bytes, so that no tunnel starves.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	CHUNK = 1 << 20,    /* bytes of one splice, at most */
	PIPE = 1 << 18,	    /* bytes of a pipe; the kernel gives 64 KiB where it gives no more */
	SPARE = 32,	    /* empty pipes that are kept */
	READ_SIZE = 1 << 14,
	FRAME = 1 << 17,    /* bytes of the largest frame */
	EVENTS = 128,
	ADDRESSES = 8,	    /* of one name, that are tried */
	STAGGER = 250,	    /* milliseconds before the next address is tried: RFC 8305 5 */
	DIALLING = 10000,   /* milliseconds for all of them */
	LINGER = 2000,	    /* milliseconds in which a client may take the last words */
	FULL = 500,	    /* milliseconds without accepting, where descriptors have run out */
	TICK = 100,	    /* milliseconds between two looks at the clock */
};

enum kind { DATA = 1, DIALLED, LATE, ENDED, READ, CLIENT_BYTES, SERVER_BYTES, DIAL, JOIN, END, DRAIN };
enum how { CLOSED, FAILED, IDLE };
enum { CLIENT, SERVER }; /* whose socket; and the direction that comes from there */
#define UNBOUNDED UINT64_MAX

struct frame {
	uint32_t size; /* bytes, this struct included */
	uint32_t kind;
	uint64_t id;
	int64_t value;
};

struct moved {
	uint64_t bytes[2];
};

struct address {
	uint32_t family; /* 4 or 6 */
	uint8_t bytes[16];
};

struct buffer {
	char *data;
	size_t at, size, room;
};

struct end {
	int fd;
	uint32_t watched;
	int away; /* hung up by its peer, which epoll would tell again and again: not watched */
	struct buffer out;
	struct connection *of;
};

struct way {
	int pipe[2]; /* -1: none, and nothing held */
	size_t held;
	uint64_t moved, left;
	int read; /* all there was to read, or may be read, is read */
	int shut; /* and the other side was told */
};

struct connection {
	struct connection *next, **self;
	uint64_t id;
	int64_t deadline; /* milliseconds; of a joined one, moved by every byte */
	struct end end[2];
	struct way way[2];
	int wanted;	/* a READ is not answered yet */
	int joined, late, lingering, over;
	struct end attempt[ADDRESSES];
	struct address address[ADDRESSES];
	uint16_t port;
	int addresses, tried, error;
	int64_t next_try, dial_end;
};

static struct connection *first, *dead, **table;
static uint32_t generation, maximum, count;
static int spare[SPARE][2], spares, queue, control, listeners, *listener, accepting = 1, listening;
static int64_t head_time, idle_time, clock_now, accept_after;
static struct buffer to_proxy, from_proxy;

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Out of memory ends the process: closed, not half open. */
static void append(struct buffer *b, const void *data, size_t size)
{
	if (b->size + size > b->room) {
		memmove(b->data, b->data + b->at, b->size -= b->at);
		b->at = 0;
		if (b->size + size > b->room && !(b->data = realloc(b->data, b->room = (b->size + size) * 2)))
			abort();
	}
	memcpy(b->data + b->size, data, size);
	b->size += size;
}

static size_t left(const struct buffer *b)
{
	return b->size - b->at;
}

static void clear(struct buffer *b)
{
	free(b->data);
	*b = (struct buffer){ 0 };
}

static void tell(enum kind kind, uint64_t id, int64_t value, const void *data, size_t size)
{
	struct frame frame = { sizeof frame + size, kind, id, value };
	append(&to_proxy, &frame, sizeof frame);
	append(&to_proxy, data, size);
}

static int take_pipe(int *fds)
{
	if (spares) {
		memcpy(fds, spare[--spares], sizeof spare[0]);
		return 0;
	}
	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0)
		return -1;
	fcntl(fds[0], F_SETPIPE_SZ, PIPE);
	return 0;
}

static void give_pipe(struct way *way)
{
	if (way->pipe[0] < 0)
		return;
	if (way->held == 0 && spares < SPARE) {
		memcpy(spare[spares++], way->pipe, sizeof spare[0]);
	} else {
		close(way->pipe[0]);
		close(way->pipe[1]);
	}
	way->pipe[0] = way->pipe[1] = -1;
}

static void shut_attempts(struct connection *c)
{
	for (int i = 0; i < c->tried; i++)
		if (c->attempt[i].fd >= 0) {
			close(c->attempt[i].fd);
			c->attempt[i].fd = -1;
		}
}

/* Closes a connection and says so. It is freed later: an event at hand may still name it. */
static void finish(struct connection *c, enum how how)
{
	struct moved moved = { { c->way[CLIENT].moved, c->way[SERVER].moved } };
	struct linger hard = { 1, 0 }; /* the peer sees a reset, not an end */
	for (int i = 0; i < 2; i++) {
		give_pipe(&c->way[i]);
		clear(&c->end[i].out);
		if (how != CLOSED && c->end[i].fd >= 0)
			setsockopt(c->end[i].fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
		if (c->end[i].fd >= 0)
			close(c->end[i].fd);
	}
	shut_attempts(c);
	if ((*c->self = c->next))
		c->next->self = c->self;
	table[(uint32_t)c->id] = NULL;
	count--;
	c->over = 1;
	c->next = dead;
	dead = c;
	tell(ENDED, c->id, how, &moved, sizeof moved);
}

static int register_end(struct end *end, uint32_t wanted)
{
	struct epoll_event event = { wanted, { .ptr = end } };
	end->watched = wanted;
	return epoll_ctl(queue, EPOLL_CTL_ADD, end->fd, &event);
}

/* Sends what waits for one side. -1 when that has failed. */
static int flush(struct connection *c, int which)
{
	struct end *end = &c->end[which];
	while (left(&end->out)) {
		ssize_t put = send(end->fd, end->out.data + end->out.at, left(&end->out), MSG_NOSIGNAL);
		if (put < 0)
			return errno == EAGAIN ? 0 : -1;
		end->out.at += put;
		if (which == SERVER)
			c->way[CLIENT].moved += put;
		else if (c->joined)
			c->way[SERVER].moved += put;
	}
	clear(&end->out);
	return 0;
}

/* One step of the joined direction that comes from `which`; -1 when it has failed. */
static int move(struct connection *c, int which)
{
	struct way *way = &c->way[which];
	int from = c->end[which].fd, to = c->end[!which].fd;
	if (left(&c->end[!which].out))
		return 0;
	if (way->held == 0 && !way->read) {
		if (way->pipe[0] < 0 && take_pipe(way->pipe) != 0)
			return -1;
		size_t want = way->left < CHUNK ? way->left : CHUNK;
		ssize_t got = splice(from, NULL, way->pipe[1], NULL, want, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (got < 0 && errno != EAGAIN)
			return -1;
		if (got == 0)
			way->read = 1;
		if (got > 0) {
			way->held = got;
			way->left -= way->left == UNBOUNDED ? 0 : got;
			way->read = way->left == 0;
		}
	}
	if (way->held > 0) {
		ssize_t put = splice(way->pipe[0], NULL, to, NULL, way->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (put < 0 && errno != EAGAIN)
			return -1;
		if (put > 0) {
			way->held -= put;
			way->moved += put;
			c->deadline = clock_now + idle_time;
		}
	}
	if (way->held > 0)
		return 0;
	give_pipe(way);
	if (way->read && !way->shut) {
		way->shut = 1;
		if (way->left > 0) /* at its limit the client has not ended: nor does the server hear so */
			shutdown(to, SHUT_WR);
	}
	return 0;
}

/* What the proxy is told of a client. -1 when the client has failed. */
static int read_client(struct connection *c)
{
	static char data[READ_SIZE];
	if (!c->wanted && !c->lingering)
		return 0;
	ssize_t got = recv(c->end[CLIENT].fd, data, sizeof data, 0);
	if (got < 0)
		return errno == EAGAIN ? 0 : -1;
	if (c->lingering) {
		c->lingering = got == 0 ? 2 : 1;
		return 0;
	}
	c->wanted = 0;
	if (c->joined)
		c->deadline = clock_now + idle_time;
	tell(DATA, c->id, 0, data, got);
	return 0;
}

/* Asks for the events that a connection can use now. */
static int watch(struct connection *c)
{
	for (int i = 0; i < 2; i++) {
		struct end *end = &c->end[i];
		const struct way *in = &c->way[i], *out = &c->way[!i];
		uint32_t wanted = left(&end->out) || out->held ? EPOLLOUT : 0;
		if (end->fd < 0)
			continue;
		if (!left(&c->end[!i].out) && ((c->joined && in->held == 0 && !in->read) ||
					       (i == CLIENT && (c->wanted || c->lingering))))
			wanted |= EPOLLIN;
		struct epoll_event event = { wanted, { .ptr = end } };
		if (end->away ? !(wanted & EPOLLIN) : wanted == end->watched)
			continue;
		if (epoll_ctl(queue, end->away ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, end->fd, &event) != 0)
			return -1;
		end->watched = wanted;
		end->away = 0;
	}
	return 0;
}

/* After anything that happened to it: is it over, and what can it use next. */
static void settle(struct connection *c)
{
	if (c->lingering && !left(&c->end[CLIENT].out) && !c->way[SERVER].shut) {
		c->way[SERVER].shut = 1;
		shutdown(c->end[CLIENT].fd, SHUT_WR);
	}
	int over = c->joined && c->way[CLIENT].shut && c->way[SERVER].shut && !left(&c->end[CLIENT].out) &&
		   !left(&c->end[SERVER].out);
	if (c->lingering == 2 || over)
		finish(c, CLOSED);
	else if (watch(c) != 0)
		finish(c, FAILED);
}

static void try_next(struct connection *c)
{
	int one = 1;
	while (c->tried < c->addresses) {
		struct end *end = &c->attempt[c->tried];
		const struct address *a = &c->address[c->tried++];
		struct sockaddr_in six_or_four = { .sin_family = AF_INET, .sin_port = htons(c->port) };
		struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(c->port) };
		struct sockaddr *to = a->family == 6 ? (void *)&six : (void *)&six_or_four;
		socklen_t size = a->family == 6 ? sizeof six : sizeof six_or_four;
		memcpy(&six_or_four.sin_addr, a->bytes, 4);
		memcpy(&six.sin6_addr, a->bytes, 16);
		*end = (struct end){ .fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .of = c };
		c->next_try = clock_now + STAGGER;
		if (end->fd >= 0) {
			setsockopt(end->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
			setsockopt(end->fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
			if ((connect(end->fd, to, size) == 0 || errno == EINPROGRESS) &&
			    register_end(end, EPOLLOUT) == 0)
				return;
		}
		c->error = errno;
		if (end->fd >= 0)
			close(end->fd);
		end->fd = -1;
	}
}

/* -1 in DIALLED once nothing is left that could answer. */
static void give_up(struct connection *c)
{
	for (int i = 0; i < c->tried; i++)
		if (c->attempt[i].fd >= 0)
			return;
	if (c->tried == c->addresses) {
		int32_t error = c->error;
		c->addresses = c->tried = 0;
		tell(DIALLED, c->id, -1, &error, sizeof error);
	}
}

static void answered(struct connection *c, int number)
{
	struct end *end = &c->attempt[number];
	int error = 0;
	socklen_t size = sizeof error;
	getsockopt(end->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	if (error) {
		c->error = error;
		close(end->fd);
		end->fd = -1;
		try_next(c);
		give_up(c);
		return;
	}
	struct end *server = &c->end[SERVER];
	struct epoll_event event = { 0, { .ptr = server } };
	server->fd = end->fd;
	server->watched = 0;
	end->fd = -1;
	shut_attempts(c);
	c->addresses = c->tried = 0;
	if (epoll_ctl(queue, EPOLL_CTL_MOD, server->fd, &event) != 0)
		finish(c, FAILED);
	else
		tell(DIALLED, c->id, number, NULL, 0);
}

static void happened(struct end *end, uint32_t events)
{
	struct connection *c = end->of;
	if (c->over)
		return;
	if (end != &c->end[CLIENT] && end != &c->end[SERVER]) {
		if (end->fd >= 0)
			answered(c, end - c->attempt);
		return;
	}
	int which = end == &c->end[SERVER];
	int failed = events & EPOLLERR;
	if (!failed && events & EPOLLOUT)
		failed = flush(c, which) != 0 || (c->joined && move(c, !which) != 0);
	if (!failed && events & EPOLLIN)
		failed = c->joined && !c->way[which].read ? move(c, which) != 0
			 : which == CLIENT		  ? read_client(c) != 0 : 0;
	if (failed) {
		finish(c, FAILED);
		return;
	}
	if (events & EPOLLHUP && !(events & EPOLLIN)) {
		/* Nothing more to read, and what is written fails: over, but for what is still on its way. */
		int pending = c->joined && (c->way[which].held || left(&c->end[!which].out));
		if (!pending) {
			finish(c, CLOSED);
			return;
		}
		end->away = 1;
		epoll_ctl(queue, EPOLL_CTL_DEL, end->fd, NULL);
	}
	if (c->end[!which].away && c->way[!which].read && !c->way[!which].held && !left(&end->out)) {
		finish(c, CLOSED);
		return;
	}
	settle(c);
}

/* Whether the listeners are watched, as they should be. */
static void watch_listeners(void)
{
	int wanted = accepting && count < maximum && clock_now >= accept_after;
	if (wanted == listening)
		return;
	for (int i = 0; i < listeners; i++) {
		struct epoll_event event = { EPOLLIN, { .ptr = &listener[i] } };
		epoll_ctl(queue, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener[i], &event);
	}
	listening = wanted;
}

static void accept_all(int fd)
{
	for (int one = 1, client; count < maximum;) {
		if ((client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0) {
			if (errno == EMFILE || errno == ENFILE)
				accept_after = clock_now + FULL;
			return;
		}
		uint32_t slot = generation;
		while (table[slot % maximum])
			slot++;
		struct connection *c = calloc(1, sizeof *c);
		if (!c)
			abort();
		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* a Unix socket has none */
		generation++;
		c->id = (uint64_t)generation << 32 | slot % maximum;
		table[slot % maximum] = c;
		count++;
		c->deadline = clock_now + head_time;
		c->wanted = 1;
		for (int i = 0; i < 2; i++) {
			c->end[i] = (struct end){ .fd = i == CLIENT ? client : -1, .of = c };
			c->way[i] = (struct way){ .pipe = { -1, -1 }, .left = UNBOUNDED };
		}
		if ((c->next = first))
			first->self = &c->next;
		c->self = &first;
		first = c;
		if (read_client(c) != 0 || register_end(&c->end[CLIENT], c->wanted ? EPOLLIN : 0) != 0)
			finish(c, FAILED);
	}
}

static void obey(const struct frame *frame, const char *data)
{
	uint32_t slot = (uint32_t)frame->id;
	size_t size = frame->size - sizeof *frame;
	if (frame->kind == DRAIN) {
		accepting = 0;
		return;
	}
	struct connection *c = slot < maximum ? table[slot] : NULL;
	if (!c || c->id != frame->id) /* it has ended meanwhile */
		return;
	int failed = 0, which = frame->kind == SERVER_BYTES;
	switch (frame->kind) {
	case READ:
		c->wanted = 1;
		break;
	case CLIENT_BYTES:
	case SERVER_BYTES:
		if (c->end[which].fd < 0)
			break;
		append(&c->end[which].out, data, size);
		failed = flush(c, which);
		break;
	case DIAL:
		c->addresses = size / sizeof(struct address);
		c->addresses = c->addresses < ADDRESSES ? c->addresses : ADDRESSES;
		memcpy(c->address, data, c->addresses * sizeof(struct address));
		c->port = frame->value;
		c->tried = 0;
		c->dial_end = clock_now + DIALLING;
		c->deadline += DIALLING;
		try_next(c);
		give_up(c);
		break;
	case JOIN:
		c->joined = 1;
		c->deadline = clock_now + idle_time;
		c->way[CLIENT].left = frame->value < 0 ? UNBOUNDED : (uint64_t)frame->value;
		c->way[CLIENT].read = c->way[CLIENT].shut = frame->value == 0;
		break;
	case END:
		if (frame->value || c->joined || c->lingering) {
			finish(c, frame->value ? FAILED : CLOSED);
			return;
		}
		if (c->end[SERVER].fd >= 0) {
			close(c->end[SERVER].fd);
			c->end[SERVER].fd = -1;
		}
		shut_attempts(c);
		c->addresses = c->tried = 0;
		c->wanted = 0;
		c->lingering = 1;
		c->deadline = clock_now + LINGER;
		break;
	}
	if (failed)
		finish(c, FAILED);
	else
		settle(c);
}

/* Obeys every whole frame that has come; 0 when there will be no more. */
static int listen_to_proxy(void)
{
	static char data[FRAME];
	ssize_t got = recv(control, data, sizeof data, MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (got == 0)
		return 0;
	append(&from_proxy, data, got);
	for (struct frame frame; left(&from_proxy) >= sizeof frame; from_proxy.at += frame.size) {
		memcpy(&frame, from_proxy.data + from_proxy.at, sizeof frame);
		if (frame.size < sizeof frame || frame.size > FRAME)
			return 0;
		if (left(&from_proxy) < frame.size)
			break;
		obey(&frame, from_proxy.data + from_proxy.at + sizeof frame);
	}
	if (!left(&from_proxy))
		from_proxy.at = from_proxy.size = 0;
	return 1;
}

/* 0 when the proxy is gone. Blocks: the proxy reads before it writes more. */
static int speak(void)
{
	while (left(&to_proxy)) {
		ssize_t put = send(control, to_proxy.data + to_proxy.at, left(&to_proxy), MSG_NOSIGNAL);
		if (put < 0 && errno != EINTR)
			return 0;
		to_proxy.at += put > 0 ? put : 0;
	}
	to_proxy.at = to_proxy.size = 0;
	return 1;
}

static void look_at_the_clock(void)
{
	for (struct connection *c = first, *next; c; c = next) {
		next = c->next;
		if (c->tried < c->addresses && clock_now >= c->next_try) {
			try_next(c);
			give_up(c);
		}
		int dialling = c->addresses && clock_now >= c->dial_end;
		if (dialling) {
			shut_attempts(c);
			c->error = ETIMEDOUT;
			c->tried = c->addresses;
			give_up(c);
		}
		if (clock_now < c->deadline)
			continue;
		if (c->lingering || c->late)
			finish(c, CLOSED);
		else if (c->joined)
			finish(c, IDLE);
		else {
			c->late = 1;
			c->deadline = clock_now + LINGER;
			tell(LATE, c->id, 0, NULL, 0);
		}
	}
}

/* Nothing that came with the descriptors is needed: no user's rights, no new ones. */
static int give_up_rights(uid_t uid)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (uid && (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0))
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int main(int argc, char **argv)
{
	static struct epoll_event events[EVENTS];
	static int own;
	if (argc < 7 || give_up_rights(atoi(argv[1])) != 0)
		return 2;
	own = control = atoi(argv[2]);
	maximum = atoi(argv[3]);
	head_time = atoll(argv[4]) * 1000;
	idle_time = atoll(argv[5]) * 1000;
	listeners = argc - 6;
	listener = calloc(listeners, sizeof *listener);
	table = calloc(maximum, sizeof(*table));
	queue = epoll_create1(EPOLL_CLOEXEC);
	signal(SIGPIPE, SIG_IGN); /* splice(2) knows no MSG_NOSIGNAL */
	struct epoll_event orders = { EPOLLIN, { .ptr = &own } };
	if (!table || !listener || head_time <= 0 || idle_time <= 0 ||
	    epoll_ctl(queue, EPOLL_CTL_ADD, control, &orders) != 0)
		return 2;
	for (int i = 0; i < listeners; i++) {
		listener[i] = atoi(argv[6 + i]);
		fcntl(listener[i], F_SETFL, O_NONBLOCK);
	}
	for (int64_t looked = clock_now = now();;) {
		watch_listeners();
		int got = epoll_wait(queue, events, EVENTS, TICK);
		clock_now = now();
		for (int i = 0; i < got; i++) {
			void *what = events[i].data.ptr;
			if (what == &own) {
				if (!listen_to_proxy())
					return 0;
			} else if ((int *)what >= listener && (int *)what < listener + listeners) {
				accept_all(*(int *)what);
			} else {
				happened(what, events[i].events);
			}
		}
		if (clock_now - looked >= TICK) {
			looked = clock_now;
			look_at_the_clock();
		}
		if (!speak())
			return 0;
		for (struct connection *c; (c = dead);) {
			dead = c->next;
			free(c);
		}
	}
}
