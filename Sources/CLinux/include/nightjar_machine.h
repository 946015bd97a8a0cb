// The kernel's data on the machine, and on the limits of this process.
#ifndef NIGHTJAR_MACHINE_H
#define NIGHTJAR_MACHINE_H

#include <stddef.h>
#include <stdint.h>

// Returns 1 if the wall clock is synchronized (adjtimex(2)), 0 if not, -1 if the kernel does not tell.
int nightjar_clock_synchronized(void);

// The highest real-time priority that this process may take (RLIMIT_RTPRIO); 0 for none.
int nightjar_realtime_limit(void);

// The number of bytes that this process may lock into memory; INT64_MAX without a limit. Raises the soft limit
// (RLIMIT_MEMLOCK) to the hard one first, and tries the privilege (CAP_IPC_LOCK).
int64_t nightjar_lockable_bytes(void);

// Keeps all memory that the process has and will have from being swapped out, each page from when it is first used
// (mlockall(2) with MCL_ONFAULT). 0, or an errno.
int nightjar_lock_memory(void);

// F_SETPIPE_SZ: lets a pipe hold so many bytes; -1 and errno.
int nightjar_set_pipe_size(int pipe, int bytes);

// Bytes of the file system of path that are free to this user, or -1 and errno.
int64_t nightjar_free_bytes(const char *path);

// The process that listens at the other end of a connected Unix socket (SO_PEERCRED), or -1.
int nightjar_peer_process(int socket);

#endif
