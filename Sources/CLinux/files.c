#include "nightjar_files.h"

#include <sys/resource.h>
#include <sys/stat.h>

extern char **environ;

static int tell(int result, const struct stat *status, struct nightjar_file *file) {
  if (result != 0) return -1;
  file->device = status->st_dev;
  file->inode = status->st_ino;
  file->mode = status->st_mode;
  file->user = status->st_uid;
  file->group = status->st_gid;
  return 0;
}

int nightjar_path_status(const char *path, struct nightjar_file *file) {
  struct stat status;
  return tell(lstat(path, &status), &status, file);
}

int nightjar_descriptor_status(int descriptor, struct nightjar_file *file) {
  struct stat status;
  return tell(fstat(descriptor, &status), &status, file);
}

void nightjar_raise_descriptor_limit(uint64_t limit) {
  struct rlimit limits;
  if (getrlimit(RLIMIT_NOFILE, &limits) != 0) return;
  rlim_t wanted = limits.rlim_max < limit ? limits.rlim_max : limit;
  if (limits.rlim_cur >= wanted) return;
  limits.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limits);
}

char *const *nightjar_environment(void) { return environ; }
