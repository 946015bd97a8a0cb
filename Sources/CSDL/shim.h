// SDL 2: a window and a sound device. Its constants are macros, and its event is a union of forty.
#ifndef NIGHTJAR_CSDL_SHIM_H
#define NIGHTJAR_CSDL_SHIM_H

// The program has its own main().
#define SDL_MAIN_HANDLED
#include <SDL2/SDL.h>

static const Uint32 nightjar_sdl_video = SDL_INIT_VIDEO;
static const Uint32 nightjar_sdl_audio = SDL_INIT_AUDIO;
static const int nightjar_sdl_anywhere = SDL_WINDOWPOS_UNDEFINED;
static const int nightjar_sdl_centred = SDL_WINDOWPOS_CENTERED;
static const Uint32 nightjar_sdl_resizable = SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI;
static const Uint32 nightjar_sdl_nv12 = SDL_PIXELFORMAT_NV12;
static const int nightjar_sdl_streaming = SDL_TEXTUREACCESS_STREAMING;
static const SDL_AudioFormat nightjar_sdl_samples = AUDIO_S16SYS;

// Waits for an event for that many milliseconds. Returns 1 if the window was closed or a key for that was pressed, 2 if the
// picture must be drawn again, and 0 otherwise.
static inline int nightjar_sdl_wait(int milliseconds) {
  SDL_Event event;
  int result = 0;
  if (!SDL_WaitEventTimeout(&event, milliseconds)) return 0;
  do {
    if (event.type == SDL_QUIT) return 1;
    if (event.type == SDL_KEYDOWN && (event.key.keysym.sym == SDLK_q || event.key.keysym.sym == SDLK_ESCAPE)) return 1;
    if (event.type == SDL_WINDOWEVENT) result = 2;
  } while (SDL_PollEvent(&event));
  return result;
}

// Wakes the thread that waits. Any thread may call it.
static inline void nightjar_sdl_wake(void) {
  SDL_Event event;
  SDL_memset(&event, 0, sizeof event);
  event.type = SDL_USEREVENT;
  SDL_PushEvent(&event);
}

#endif
