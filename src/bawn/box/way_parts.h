/*
 * way_parts: what the files of the way share: its tables, and the small things that all of them do.
 *
 *     way.c      the loop, what opens and starts it
 *     join.c     connections, from client to proxy
 *     resolve.c  names, their addresses and listeners, and the questions about them
 */
#ifndef BAWN_WAY_PARTS_H
#define BAWN_WAY_PARTS_H

#include "wire.h"

#include <netinet/in.h>
#include <time.h>

enum {
	PROXY_PORT = 3128,
	DIAL = 2, /* seconds to reach the proxy */
	FIRST_ADDRESS = 0x7f400001, /* 127.64.0.1 */
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

struct tables {
	struct connection connection[CONNECTIONS];
	int idle[CONNECTIONS], idle_count; /* a stack: the rooms used last are used again */
	struct name name[NAMES];
	struct listener listener[LISTENERS];
	struct ask ask[ASKS];
	struct wait wait[WAITS];
	struct stream stream[STREAMS];
	char scratch[ROOM];
	char room[CONNECTIONS][2][ROOM];
};

extern struct tables *t;
extern int loop; /* the epoll descriptor */
extern time_t now; /* seconds, never 0 */
extern int timed; /* something has a deadline: the loop wakes once a second */
extern int listeners_max, asks_max;
extern int udp, stream_listener; /* the resolver's descriptors */
extern int udp_ready; /* there may be questions */

/* way.c */
uint64_t tag(enum kind kind, unsigned index, unsigned low, unsigned generation);
int watch(int op, int fd, uint32_t events, uint64_t data);
/* A nonblocking socket on that address, listening where it is a stream; -1 and errno. */
int open_at(uint32_t address, unsigned port, int type);
/* A fresh connection to the proxy; -1 and errno. */
int dial(void);
/* Writes all of it, or says 0. */
int say(int fd, const char *text, size_t length);
void close_with_reset(int fd);

/* join.c */
void on_connection(struct connection *c, int side, uint32_t events);
void queue(struct listener *l); /* it may have clients */
int may_take(void); /* there are clients, and there is room for them */
void take_clients(void);
void join_late(void); /* ends what is late */

/* resolve.c */
int listen_for(int name, uint32_t address, unsigned port);
void on_ask(struct ask *a);
void on_stream(struct stream *s);
void accept_stream(void);
int may_ask(void);
void take_questions(void);
void resolve_late(void);

#endif
