/*
 * way: the loopback end of the one way out (way.c says how).
 */
#ifndef BAWN_WAY_H
#define BAWN_WAY_H

/* Opens everything that listens, and looks whether the proxy at `place` (a socket's path, or
 * ADDRESS:PORT) answers. NULL, or what
 * could not be done; errno says why. */
const char *way_open(const char *place);

/* Serves, in a thread of this process, until it ends. 0, or an error number. */
int way_start(void);

#endif
