// Other programs, and pipes to them.
#ifndef NIGHTJAR_PROCESSES_H
#define NIGHTJAR_PROCESSES_H

#include <sys/types.h>

// Starts the program at the path in a session and process group of its own, in the folder /, with input and output (both
// standard output and standard error) and no other descriptor, no blocked signals, and no ignored ones. 0, or an errno.
int nightjar_spawn(const char *path, char *const arguments[], char *const environment[], int input, int output,
                   pid_t *process);

// A close-on-exec descriptor that is readable once the process has ended (pidfd_open(2)); -1 and errno.
int nightjar_process_descriptor(pid_t process);

// A pipe whose two ends are close-on-exec from the beginning, so that no other thread's child has them: pipe2(2).
int nightjar_pipe(int ends[2]);

#endif
