#ifndef NIGHTJAR_CYUV_SHIM_H
#define NIGHTJAR_CYUV_SHIM_H

#include <libyuv/convert.h>
#include <libyuv/convert_from.h>
#include <libyuv/planar_functions.h>
#include <libyuv/rotate.h>
#include <libyuv/scale.h>

#endif
