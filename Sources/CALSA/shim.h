// alsa-lib prints its own messages to standard error unless a handler takes them.
#ifndef NIGHTJAR_CALSA_SHIM_H
#define NIGHTJAR_CALSA_SHIM_H

#include <alsa/asoundlib.h>

/// Samples of 16 bits in the host's byte order, which alsa-lib names by an alias that Swift does not see.
static const snd_pcm_format_t nightjar_alsa_s16 = SND_PCM_FORMAT_S16;

static void nightjar_alsa_no_message(const char *file, int line, const char *function, int error, const char *format, ...) {
  (void)file, (void)line, (void)function, (void)error, (void)format;
}

/// Silences alsa-lib: what it would print is in its return codes too.
static inline void nightjar_alsa_silence(void) { snd_lib_error_set_handler(nightjar_alsa_no_message); }

#endif
