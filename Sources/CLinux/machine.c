#define _GNU_SOURCE
#include "nightjar_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

int nightjar_clock_synchronized(void) {
  struct timex state = {.modes = 0};
  int result = adjtimex(&state);
  if (result < 0) return -1;
  return result != TIME_ERROR && !(state.status & STA_UNSYNC);
}

int nightjar_realtime_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_RTPRIO, &limit) != 0) return 0;
  return limit.rlim_cur > 99 ? 99 : (int)limit.rlim_cur;
}

int64_t nightjar_lockable_bytes(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 0;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &limit);
    getrlimit(RLIMIT_MEMLOCK, &limit);
  }
  if (limit.rlim_cur == RLIM_INFINITY) return INT64_MAX;
  // A privilege within a container's user namespace has no effect here. So the code does not ask for it, but tries: it maps
  // more memory than the limit, without access, so that no page is used.
  size_t beyond = ((size_t)limit.rlim_cur + (1 << 20)) & ~(size_t)4095;
  void *mapped = mmap(NULL, beyond, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_LOCKED, -1, 0);
  if (mapped == MAP_FAILED) return (int64_t)limit.rlim_cur;
  munmap(mapped, beyond);
  return INT64_MAX;
}

int nightjar_set_pipe_size(int pipe, int bytes) { return fcntl(pipe, F_SETPIPE_SZ, bytes); }

int nightjar_lock_memory(void) { return mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0 ? 0 : errno; }

int64_t nightjar_free_bytes(const char *path) {
  struct statvfs status;
  if (statvfs(path, &status) != 0) return -1;
  return (int64_t)status.f_bavail * (int64_t)status.f_frsize;
}

int nightjar_peer_process(int socket) {
  struct ucred credentials;
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return -1;
  return credentials.pid > 0 ? credentials.pid : -1;
}
