#ifndef NIGHTJAR_CSYSTEMD_SHIM_H
#define NIGHTJAR_CSYSTEMD_SHIM_H

#include <systemd/sd-bus.h>

#endif
