// The result of stat(2), in a type of our own: struct stat belongs to whichever module's C headers a compiler run happens
// to read first, so that Swift files that import Glibc alone may or may not see its members.
#ifndef NIGHTJAR_FILES_H
#define NIGHTJAR_FILES_H

#include <stdint.h>

struct nightjar_file {
  uint64_t device;
  uint64_t inode;
  uint32_t mode;
  uint32_t user;
  uint32_t group;
};

// lstat(2): of a symbolic link itself. 0, or -1 and errno.
int nightjar_path_status(const char *path, struct nightjar_file *file);

// fstat(2). 0, or -1 and errno.
int nightjar_descriptor_status(int descriptor, struct nightjar_file *file);

// Lets the process open as many descriptors as its hard limit allows, at most limit.
void nightjar_raise_descriptor_limit(uint64_t limit);

// environ(7): NAME=VALUE each, and a null pointer behind the last. Swift takes the variable itself for unsafe.
char *const *nightjar_environment(void);

#endif
