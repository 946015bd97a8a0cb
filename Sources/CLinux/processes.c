#define _GNU_SOURCE
#include "nightjar_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

int nightjar_spawn(const char *path, char *const arguments[], char *const environment[], int input, int output,
                   pid_t *process) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  int result = posix_spawn_file_actions_init(&actions);
  if (result == 0) result = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  if (result == 0) result = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (result == 0) result = posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  if (result == 0) result = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  if (result == 0) result = posix_spawn_file_actions_addchdir_np(&actions, "/");
  if (result == 0) result = posix_spawn(process, path, &actions, &attributes, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return result;
}

int nightjar_process_descriptor(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

int nightjar_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }
