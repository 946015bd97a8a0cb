// What the kernel knows of the machine and of what this process may do.
#ifndef NIGHTJAR_MACHINE_H
#define NIGHTJAR_MACHINE_H

#include <stdint.h>

// Whether something synchronizes the wall clock (adjtimex(2)): 1, 0, or -1 where the kernel does not tell.
int nightjar_clock_synchronized(void);

// The highest real-time priority that this process may take (RLIMIT_RTPRIO); 0 for none.
int nightjar_realtime_limit(void);

// Bytes of the file system of path that are free to this user, or -1 and errno.
int64_t nightjar_free_bytes(const char *path);

// The process that listens at the other end of a connected Unix socket (SO_PEERCRED), or -1.
int nightjar_peer_process(int socket);

#endif
