// Video4Linux2: request codes and flags are macros, which Swift does not see.
#ifndef NIGHTJAR_V4L2_H
#define NIGHTJAR_V4L2_H

#include <linux/videodev2.h>

#endif
