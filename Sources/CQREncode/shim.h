#ifndef NIGHTJAR_CQRENCODE_SHIM_H
#define NIGHTJAR_CQRENCODE_SHIM_H

#include <qrencode.h>

#endif
