/* wire: see wire.h. Nothing here trusts a length that it was told. */
#define _GNU_SOURCE /* memmem */
#include "wire.h"

#include <string.h>
#include <strings.h>

enum { HEADER = 12, TYPE_A = 1, TYPE_OPT = 41, CLASS_IN = 1, TTL = 1, UDP_PAYLOAD = 1232 /* DNS flag day 2020 */ };

static unsigned get16(const unsigned char *at)
{
	return at[0] << 8 | at[1];
}

static unsigned char *put16(unsigned char *at, unsigned value)
{
	at[0] = value >> 8;
	at[1] = value;
	return at + 2;
}

/* ---- questions ------------------------------------------------------------------------------- */

/* What may stand in a name that is asked for. The name goes into a line of HTTP: a label may hold any
 * octet in DNS, a line end too, and a dot. An underscore is no host's, but is common in names. */
static int is_name(unsigned char octet)
{
	return (octet >= 'a' && octet <= 'z') || (octet >= '0' && octet <= '9') || octet == '-' || octet == '_';
}

/* The name at packet[*at], without compression (nothing precedes a question that it could point to).
 * Its code: FORMERR, NXDOMAIN for what is no host's name, NOERROR. Moves *at behind it. */
static int read_name(const unsigned char *packet, size_t length, size_t *at, char *name)
{
	size_t start = *at, used = 0;
	int code = NOERROR;
	for (;;) {
		if (*at >= length)
			return FORMERR;
		unsigned size = packet[(*at)++];
		if (size == 0)
			break;
		/* 255 octets with the last 0 (RFC 1035 2.3.4); 64 and more is a pointer or reserved */
		if (size > 63 || size > length - *at || *at + size - start > 254)
			return FORMERR;
		if (used)
			name[used++] = '.';
		for (unsigned i = 0; i < size; i++) {
			unsigned char octet = packet[*at + i];
			if (octet >= 'A' && octet <= 'Z')
				octet += 'a' - 'A';
			if (!is_name(octet))
				code = NXDOMAIN;
			name[used++] = octet;
		}
		*at += size;
	}
	name[used] = 0;
	return used ? code : NXDOMAIN;
}

static int ends_in(const char *name, const char *tail)
{
	size_t length = strlen(name), size = strlen(tail);
	return length >= size && !strcmp(name + length - size, tail) &&
	       (length == size || name[length - size - 1] == '.');
}

/* The OPT record (RFC 6891 6.1.2), where the question brings one. */
static int read_edns(const unsigned char *packet, size_t length, size_t at, unsigned records,
		     struct question *question)
{
	if (records == 0)
		return NOERROR;
	if (length - at < 11 || packet[at] != 0 || get16(packet + at + 1) != TYPE_OPT)
		return records > 1 ? FORMERR : NOERROR; /* a signature, or what else nobody asked for here */
	question->edns = 1;
	if (get16(packet + at + 9) > length - at - 11)
		return FORMERR;
	return packet[at + 6] ? BADVERS : NOERROR;
}

int read_question(const unsigned char *packet, size_t length, struct question *question)
{
	memset(question, 0, sizeof *question);
	if (length < HEADER || packet[2] & 0x80)
		return IGNORE; /* no question at all; an answer to an answer could go on for ever */
	question->id = get16(packet);
	question->recursion = packet[2] & 1;
	if (packet[2] & 0x78)
		return NOTIMP;
	if (get16(packet + 4) != 1 || get16(packet + 6) || get16(packet + 8))
		return FORMERR;
	size_t at = HEADER;
	int code = read_name(packet, length, &at, question->name);
	if (code == FORMERR || length - at < 4)
		return FORMERR;
	question->type = get16(packet + at);
	unsigned class = get16(packet + at + 2);
	at += 4;
	question->raw_length = at - HEADER;
	memcpy(question->raw, packet + HEADER, question->raw_length);
	int edns = read_edns(packet, length, at, get16(packet + 10), question);
	if (edns != NOERROR)
		return edns;
	if (class != CLASS_IN)
		return REFUSED;
	/* Of addresses there are no names here (RFC 6303 says the same of 127/8). */
	return code == NOERROR && ends_in(question->name, "arpa") ? NXDOMAIN : code;
}

int is_local(const struct question *question)
{
	return ends_in(question->name, "localhost");
}

size_t write_answer(const struct question *question, int code, uint32_t address, unsigned char *out)
{
	int local = code == NOERROR && is_local(question);
	int answers = code == NOERROR && question->type == TYPE_A && (address || local);
	unsigned char *at = put16(out, question->id);
	*at++ = 0x80 | question->recursion;
	*at++ = 0x80 | (code & 15); /* recursion is there: stub resolvers want it said */
	at = put16(at, question->raw_length != 0);
	at = put16(at, answers);
	at = put16(at, 0);
	at = put16(at, question->edns);
	memcpy(at, question->raw, question->raw_length);
	at += question->raw_length;
	if (answers) {
		if (local)
			address = 0x7f000001;
		at = put16(at, 0xc000 | HEADER);
		at = put16(at, TYPE_A);
		at = put16(at, CLASS_IN);
		at = put16(at, 0);
		at = put16(at, TTL);
		at = put16(at, 4);
		at = put16(at, address >> 16);
		at = put16(at, address & 0xffff);
	}
	if (question->edns) {
		*at++ = 0;
		at = put16(at, TYPE_OPT);
		at = put16(at, UDP_PAYLOAD);
		at = put16(at, (code >> 4) << 8);
		at = put16(at, 0);
		at = put16(at, 0);
	}
	return at - out;
}

/* ---- heads ----------------------------------------------------------------------------------- */

size_t head_length(const char *text, size_t length)
{
	const char *end = memmem(text, length, "\r\n\r\n", 4);
	return end ? (size_t)(end - text) + 4 : 0;
}

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int head_status(const char *head, size_t length)
{
	if (length < 13 || memcmp(head, "HTTP/1.", 7) || !is_digit(head[7]) || head[8] != ' ' ||
	    !is_digit(head[9]) || !is_digit(head[10]) || !is_digit(head[11]) ||
	    (head[12] != ' ' && head[12] != '\r'))
		return -1;
	return (head[9] - '0') * 100 + (head[10] - '0') * 10 + head[11] - '0';
}

/* "443,80": decimal, with spaces around where anybody puts them. */
static int read_ports(const char *at, const char *end, uint16_t ports[PORTS])
{
	int count = 0;
	for (;;) {
		unsigned port = 0, digits = 0;
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		for (; at < end && is_digit(*at) && digits < 6; at++, digits++)
			port = port * 10 + (*at - '0');
		if (digits == 0 || port == 0 || port > 65535 || count == PORTS)
			return -1;
		int before = 0;
		while (before < count && ports[before] != port)
			before++;
		ports[before] = port;
		count += before == count;
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		if (at == end)
			return count;
		if (*at++ != ',')
			return -1;
	}
}

int head_ports(const char *head, size_t length, uint16_t ports[PORTS])
{
	static const char field[] = "Bawn-Ports:";
	const char *end = head + length;
	int count = -1;
	for (const char *line = head, *stop; line < end; line = stop + 2) {
		stop = memmem(line, end - line, "\r\n", 2);
		if (!stop)
			break;
		if ((size_t)(stop - line) < sizeof field - 1 || strncasecmp(line, field, sizeof field - 1))
			continue;
		if (count != -1)
			return -1;
		count = read_ports(line + sizeof field - 1, stop, ports);
		if (count == -1)
			return -1;
	}
	return count;
}
