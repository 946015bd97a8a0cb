#ifndef NIGHTJAR_CTURBOJPEG_SHIM_H
#define NIGHTJAR_CTURBOJPEG_SHIM_H

#include <turbojpeg.h>

#endif
