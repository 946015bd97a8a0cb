// LD_PRELOAD: lets an ordinary file, named by NIGHTJAR_RENDER_NODE, pass for a DRM render node.
//
// libva's vaGetDisplayDRM asks libdrm's drmGetNodeTypeFromFd, which wants a character device (fstat) whose
// /sys/dev/char/MAJOR:MINOR/device/drm exists (stat) and whose minor number >> 6 is 2. vaInitialize and ffmpeg may ask
// for the kernel driver's name (DRM_IOCTL_VERSION).
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { drm_major = 226, render_minor = 128 };

static const char *node_path(void) {
  const char *path = getenv("NIGHTJAR_RENDER_NODE");
  return path && *path ? path : NULL;
}

// The kernel's own answer, past every libc symbol that this library stands in front of.
static int real_stat(int directory, const char *path, struct stat *status, int flags) {
  return (int)syscall(SYS_newfstatat, directory, path, status, flags);
}

static int is_node(const struct stat *status) {
  struct stat node;
  int saved = errno;
  int same = node_path() && real_stat(AT_FDCWD, node_path(), &node, 0) == 0 && node.st_dev == status->st_dev &&
             node.st_ino == status->st_ino;
  errno = saved;
  return same;
}

static void pass(struct stat *status) {
  status->st_mode = (status->st_mode & ~(mode_t)S_IFMT) | S_IFCHR;
  status->st_rdev = makedev(drm_major, render_minor);
}

static int any_stat(int directory, const char *path, struct stat *status, int flags) {
  if (node_path() && path && strncmp(path, "/sys/dev/char/226:128/device/drm", 32) == 0) {
    memset(status, 0, sizeof *status);
    status->st_mode = S_IFDIR | 0755;
    return 0;
  }
  int result = real_stat(directory, path, status, flags);
  if (result == 0 && is_node(status)) pass(status);
  return result;
}

EXPORT int stat(const char *path, struct stat *status) { return any_stat(AT_FDCWD, path, status, 0); }
EXPORT int lstat(const char *path, struct stat *status) {
  return any_stat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
EXPORT int fstat(int fd, struct stat *status) { return any_stat(fd, "", status, AT_EMPTY_PATH); }
EXPORT int fstatat(int fd, const char *path, struct stat *status, int flags) {
  return any_stat(fd, path, status, flags);
}
// The same structure on a 64-bit machine.
EXPORT int stat64(const char *path, struct stat64 *status) { return stat(path, (struct stat *)status); }
EXPORT int lstat64(const char *path, struct stat64 *status) { return lstat(path, (struct stat *)status); }
EXPORT int fstat64(int fd, struct stat64 *status) { return fstat(fd, (struct stat *)status); }
EXPORT int fstatat64(int fd, const char *path, struct stat64 *status, int flags) {
  return fstatat(fd, path, (struct stat *)status, flags);
}

// /dev/dri is the node's directory where the node is called renderD128: so a program finds it by itself.
static const char *redirected(const char *path, char *buffer, size_t size) {
  static const char directory[] = "/dev/dri", name[] = "/renderD128";
  const char *node = node_path();
  const char *slash = node ? strrchr(node, '/') : NULL;
  if (!slash || strcmp(slash, name) != 0 || !path || strncmp(path, directory, sizeof directory - 1) != 0) return path;
  const char *rest = path + sizeof directory - 1;
  if (*rest == '/' && strcmp(rest, name) != 0) return path;
  if (*rest && *rest != '/') return path;
  if ((size_t)(slash - node) + strlen(rest) >= size) return path;
  memcpy(buffer, node, (size_t)(slash - node));
  strcpy(buffer + (slash - node), rest);
  return buffer;
}

EXPORT DIR *opendir(const char *path) {
  DIR *(*real)(const char *) = dlsym(RTLD_NEXT, "opendir");
  char buffer[4096];
  return real(redirected(path, buffer, sizeof buffer));
}

static int any_open(const char *path, int flags, mode_t mode) {
  char buffer[4096];
  return (int)syscall(SYS_openat, AT_FDCWD, redirected(path, buffer, sizeof buffer), flags, mode);
}

// The mode is there where a file may be made; elsewhere the kernel does not look at it.
EXPORT int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return any_open(path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return any_open(path, flags | O_LARGEFILE, mode);
}

// struct drm_version of drm.h, which a machine without libdrm's headers lacks.
struct drm_version {
  int major, minor, patch;
  size_t name_length;
  char *name;
  size_t date_length;
  char *date;
  size_t description_length;
  char *description;
};

static void give(char *to, size_t *length, const char *text) {
  size_t room = *length, size = strlen(text);
  if (to && room) memcpy(to, text, size < room ? size : room);
  *length = size;
}

EXPORT int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  // DRM_IOCTL_VERSION: _IOWR('d', 0, struct drm_version)
  struct stat status;
  if ((request & 0xffff) == ('d' << 8) && real_stat(fd, "", &status, AT_EMPTY_PATH) == 0 && is_node(&status)) {
    struct drm_version *version = argument;
    version->major = 1;
    version->minor = version->patch = 0;
    give(version->name, &version->name_length, "strict");
    give(version->date, &version->date_length, "20240101");
    give(version->description, &version->description_length, "strict VA-API test driver");
    return 0;
  }
  return (int)syscall(SYS_ioctl, fd, request, argument);
}

// GStreamer's va plug-in finds its devices by GUdev, which knows none here: it gets one, the node. GLib's functions are
// found at run time, so that this library can stand in front of programs without it.
static void *symbol(const char *library, const char *name) {
  void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return handle ? dlsym(handle, name) : NULL;
}

EXPORT void *g_udev_client_query_by_subsystem(void *client, const char *subsystem) {
  if (!node_path() || !subsystem || strcmp(subsystem, "drm") != 0) {
    void *(*real)(void *, const char *) = symbol("libgudev-1.0.so.0", "g_udev_client_query_by_subsystem");
    return real ? real(client, subsystem) : NULL;
  }
  void *(*new_object)(unsigned long, const char *, ...) = symbol("libgobject-2.0.so.0", "g_object_new");
  unsigned long (*object_type)(void) = symbol("libgobject-2.0.so.0", "g_object_get_type");
  void *(*append)(void *, void *) = symbol("libglib-2.0.so.0", "g_list_append");
  return new_object && object_type && append ? append(NULL, new_object(object_type(), NULL)) : NULL;
}

EXPORT const char *g_udev_device_get_device_file(void *device) {
  if (node_path()) return node_path();
  const char *(*real)(void *) = symbol("libgudev-1.0.so.0", "g_udev_device_get_device_file");
  return real ? real(device) : NULL;
}

EXPORT const char *g_udev_device_get_name(void *device) {
  if (node_path()) return "renderD128";
  const char *(*real)(void *) = symbol("libgudev-1.0.so.0", "g_udev_device_get_name");
  return real ? real(device) : NULL;
}
