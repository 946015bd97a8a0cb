// The log of violations, time, and the calls that never return.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "strict.h"

static void line(struct driver *driver, const char *prefix, const char *format, va_list arguments) {
  char text[512];
  size_t length = (size_t)snprintf(text, sizeof text, "%s: ", prefix);
  int more = vsnprintf(text + length, sizeof text - length - 1, format, arguments);
  length += more < 0 ? 0 : (size_t)more;
  if (length > sizeof text - 2) length = sizeof text - 2;
  text[length++] = '\n';
  int fd = driver->knobs.log_path[0]
               ? open(driver->knobs.log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)
               : -1;
  // One write a line: two processes with one log do not mix their lines.
  ssize_t written = write(fd >= 0 ? fd : STDERR_FILENO, text, length);
  (void)written;
  if (fd >= 0) close(fd);
}

void violation(struct driver *driver, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  line(driver, "violation", format, arguments);
  va_end(arguments);
}

void note(struct driver *driver, const char *format, ...) {
  if (!driver->knobs.log_path[0]) return;
  va_list arguments;
  va_start(arguments, format);
  line(driver, "summary", format, arguments);
  va_end(arguments);
}

bool differs(struct driver *driver, const char *check, const char *field, int64_t got, int64_t wanted) {
  if (got == wanted) return false;
  violation(driver, "%s: %s is %lld, expected %lld", check, field, (long long)got, (long long)wanted);
  return true;
}

uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sleep_ns(uint64_t ns) {
  struct timespec left = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

bool hang(enum point point, uint64_t frame, uint64_t limit_ns) {
  if (injection.hang != point || point == at_none || frame < injection.hang_at || frame > injection.hang_until) {
    return true;
  }
  uint64_t start = now_ns();
  double seconds = injection.hang_seconds;
  // In small steps, because the control file may end a hang.
  while (injection.hang == point) {
    uint64_t passed = now_ns() - start;
    if (seconds >= 0 && (double)passed >= seconds * 1e9) {
      injection.hang = at_none;
      return true;
    }
    if (passed >= limit_ns) return false;
    uint64_t step = 5000000;
    sleep_ns(limit_ns - passed < step ? limit_ns - passed : step);
    control_poll();
  }
  return true;
}
