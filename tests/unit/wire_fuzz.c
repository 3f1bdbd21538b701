/* Feeds mutations of real questions and heads to wire.c: `wire_fuzz COUNT`. Built with the sanitizers;
 * prints what it has seen. What must hold of any input is asserted here. */
#include "wire.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 0x9e3779b97f4a7c15;

/* xorshift64*: the same on every machine. */
static uint32_t chance(uint32_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)(state * 0x2545f4914f6cdd1d >> 32) % below;
}

static const struct { const char *bytes; size_t length; } seeds[] = {
#define SEED(text) { text, sizeof text - 1 }
	SEED("\0\7\1\0\0\1\0\0\0\0\0\0\3web\4test\0\0\1\0\1"),
	SEED("\0\7\1 \0\1\0\0\0\0\0\1\3WEB\4test\0\0\34\0\1\0\0)\20\0\0\0\0\0\0\f\0\n\0\b12345678"),
	SEED("\0\7\1\0\0\1\0\0\0\0\0\0\tlocalhost\0\0\1\0\1"),
	SEED("\0\7\1\0\0\1\0\0\0\0\0\0\1""1\1""0\2""64\3""127\7in-addr\4arpa\0\0\14\0\1"),
	SEED("\0\7\1\0\0\1\0\0\0\0\0\0\3web\300\f\0\1\0\1"),
	SEED("HTTP/1.1 200 OK\r\nBawn-Ports: 443,80\r\nVia: x\r\n\r\nbody"),
	SEED("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"),
	SEED("HTTP/1.0 200\r\nbawn-ports:\t1 , 65535 \r\nBawn-Ports: 1\r\n\r\n"),
};

/* Changes, cuts and doubles, in a buffer of exactly its length so that one octet too far is seen. */
static unsigned char *mutated(size_t *length)
{
	const size_t pick = chance(sizeof seeds / sizeof *seeds);
	size_t size = seeds[pick].length, room = size + 600;
	unsigned char *work = malloc(room);
	memcpy(work, seeds[pick].bytes, size);
	for (uint32_t times = chance(6); times; times--) {
		size_t at = size ? chance(size) : 0, some = chance(80);
		switch (chance(5)) {
		case 0: if (size) work[at] = chance(256); break;
		case 1: if (size) work[at] ^= 1 << chance(8); break;
		case 2: size = at; break;
		case 3: /* a run of something */
			if (size + some <= room) {
				memmove(work + at + some, work + at, size - at);
				memset(work + at, chance(3) ? (int)chance(64) : '9', some);
				size += some;
			}
			break;
		case 4: if (size * 2 <= room) { memcpy(work + size, work, size); size *= 2; } break;
		}
	}
	unsigned char *exact = malloc(size ? size : 1);
	memcpy(exact, work, size);
	free(work);
	*length = size;
	return exact;
}

static int try_question(const unsigned char *packet, size_t length)
{
	struct question question;
	unsigned char out[ANSWER_SIZE];
	int code = read_question(packet, length, &question);
	if (code == IGNORE)
		return code;
	assert(strlen(question.name) < NAME_SIZE);
	if (code == NOERROR) {
		assert(question.name[0]);
		for (const char *at = question.name; *at; at++)
			assert(strchr("abcdefghijklmnopqrstuvwxyz0123456789-_.", *at));
		assert(!strstr(question.name, "..") && question.name[strlen(question.name) - 1] != '.');
	}
	size_t size = write_answer(&question, code, 0x7f400001, out);
	assert(size >= 12 && size <= ANSWER_SIZE && out[2] & 0x80 && (out[3] & 15) == (code & 15));
	assert(read_question(out, size, &question) == IGNORE);
	return code;
}

static int try_head(const char *text, size_t length)
{
	uint16_t port[PORTS];
	size_t head = head_length(text, length);
	assert(head <= length);
	int status = head_status(text, head), count = head_ports(text, head, port);
	assert(status >= -1 && status <= 999 && count >= -1 && count <= PORTS && count != 0);
	for (int i = 0; i < count; i++)
		assert(port[i]);
	return status == 200 && count > 0;
}

int main(int argc, char **argv)
{
	unsigned asked = 0, refused = 0, listed = 0;
	long count = argc > 1 ? atol(argv[1]) : 1000;
	for (long i = 0; i < count; i++) {
		size_t length;
		unsigned char *input = mutated(&length);
		int code = try_question(input, length);
		asked += code == NOERROR;
		refused += code > 0;
		listed += try_head((char *)input, length);
		free(input);
	}
	printf("%u %u %u\n", asked, refused, listed);
	return 0;
}
