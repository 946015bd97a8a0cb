// Macros, variadic calls and GNU-only symbols of the system's headers, which Swift cannot import.
// Everything is prefixed nightjar_; nothing here has logic of its own.
#ifndef NIGHTJAR_CLINUX_H
#define NIGHTJAR_CLINUX_H

#include "nightjar_devices.h"
#include "nightjar_files.h"
#include "nightjar_machine.h"
#include "nightjar_processes.h"
#include "nightjar_sockets.h"
#include "nightjar_threads.h"
#include "nightjar_v4l2.h"
#include "nightjar_waiting.h"

#endif
