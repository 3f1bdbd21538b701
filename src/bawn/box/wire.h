/*
 * wire: the bytes that the way reads and writes, without any I/O: questions and answers of DNS
 * (RFC 1035, 6891), and the head of the answer that the proxy on the host gives.
 */
#ifndef BAWN_WIRE_H
#define BAWN_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum {
	NAME_SIZE = 254,     /* 253 octets of text (RFC 1035 3.1) and a NUL */
	QUESTION_SIZE = 259, /* 255 octets on the wire, type and class */
	ANSWER_SIZE = 12 + QUESTION_SIZE + 16 + 11,
	PORTS = 64, /* listed ports of one name */
};

/* Codes of RFC 1035 4.1.1 and RFC 6891; IGNORE is not one: what deserves no answer. */
enum { IGNORE = -1, NOERROR = 0, FORMERR = 1, SERVFAIL = 2, NXDOMAIN = 3, NOTIMP = 4, REFUSED = 5, BADVERS = 16 };

struct question {
	char name[NAME_SIZE]; /* lower case, no final dot; only what can be a host's name */
	uint16_t id, type;
	unsigned char recursion, edns; /* asked for; there was an OPT record */
	unsigned char raw[QUESTION_SIZE];
	uint16_t raw_length; /* 0 where there is no question to repeat */
};

/* Reads a question: IGNORE, NOERROR (to be asked), or the code to answer at once. `question` is
 * filled as far as an answer needs it. */
int read_question(const unsigned char *packet, size_t length, struct question *question);

/* Is it about localhost (RFC 6761 6.3)? Then it is answered here, and nobody is asked. */
int is_local(const struct question *question);

/* Writes the answer into `out` (ANSWER_SIZE octets) and returns its length. `address` (host order) is
 * given for a question of type A; 0 is no address. */
size_t write_answer(const struct question *question, int code, uint32_t address, unsigned char *out);

/* The length of an HTTP head with its empty line; 0 where it has not come to its end. */
size_t head_length(const char *text, size_t length);

/* The status of a whole head, -1 where it is none. */
int head_status(const char *head, size_t length);

/* The ports of its one Bawn-Ports field; how many, -1 where the field is missing, twice there or broken. */
int head_ports(const char *head, size_t length, uint16_t ports[PORTS]);

#endif
