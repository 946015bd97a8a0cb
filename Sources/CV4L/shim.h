#ifndef NIGHTJAR_CV4L_SHIM_H
#define NIGHTJAR_CV4L_SHIM_H

#include <linux/videodev2.h>
#include <libv4lconvert.h>

#endif
