// LAME's reports are variadic functions, which print to the terminal unless they are taken away.
#ifndef NIGHTJAR_CLAME_SHIM_H
#define NIGHTJAR_CLAME_SHIM_H

#include <stdio.h>
#include <lame/lame.h>

static inline void nightjar_lame_be_silent(lame_global_flags *flags) {
  lame_set_errorf(flags, NULL);
  lame_set_debugf(flags, NULL);
  lame_set_msgf(flags, NULL);
}

#endif
