// Preloaded, it makes a kernel that does not cut messages into packets (no UDP_SEGMENT) of one that does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

int sendmmsg(int socket, struct mmsghdr *messages, unsigned int count, int flags) {
  static int (*next)(int, struct mmsghdr *, unsigned int, int);
  if (!next) next = dlsym(RTLD_NEXT, "sendmmsg");
  for (unsigned int i = 0; i < count; i++) {
    struct cmsghdr *control = CMSG_FIRSTHDR(&messages[i].msg_hdr);
    if (!control || control->cmsg_level != SOL_UDP || control->cmsg_type != UDP_SEGMENT) continue;
    // What comes before it is sent, as the kernel does.
    if (i > 0) return next(socket, messages, i, flags);
    errno = EINVAL;
    return -1;
  }
  return next(socket, messages, count, flags);
}
