#ifndef NIGHTJAR_CSYSTEMD_SHIM_H
#define NIGHTJAR_CSYSTEMD_SHIM_H

// sd_journal_sendv as a function: the macro of this name adds the source line of its caller, which is Swift's.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>

#endif
