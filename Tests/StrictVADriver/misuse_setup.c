// The client's surroundings: display, config, surfaces, context, pictures to code.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "misuse.h"

static bool make_config(struct client *c) {
  VAProfile profile = c->hevc ? VAProfileHEVCMain : VAProfileH264High;
  VAEntrypoint entrypoint = is("entry-point") ? VAEntrypointEncPicture : VAEntrypointEncSlice;
  VAConfigAttrib attributes[] = {
      {VAConfigAttribRTFormat, 0}, {VAConfigAttribRateControl, 0}, {VAConfigAttribEncPackedHeaders, 0}};
  int asked = is("attribute-unasked") ? 2 : 3;
  if (!is("entry-point") &&
      !accepted(c, vaGetConfigAttributes(c->display, profile, entrypoint, attributes, asked),
                "vaGetConfigAttributes")) {
    return false;
  }
  c->packed = attributes[2].value == VA_ATTRIB_NOT_SUPPORTED ? 0 : attributes[2].value;
  if (is("packed-unasked")) c->packed = 0;
  attributes[0].value = VA_RT_FORMAT_YUV420;
  attributes[1].value = c->rate_control;
  attributes[2].value = c->packed;
  return accepted(c, vaCreateConfig(c->display, profile, entrypoint, attributes, 3, &c->config), "vaCreateConfig");
}

bool setup(struct client *c) {
  c->config = c->context = VA_INVALID_ID;
  for (int i = 0; i < input_count; i++) c->inputs[i] = c->coded[i] = VA_INVALID_ID;
  c->reconstructed[0] = c->reconstructed[1] = VA_INVALID_ID;
  const char *path = getenv("NIGHTJAR_RENDER_NODE");
  c->fd = open(path ? path : "/dev/dri/renderD128", O_RDWR);
  c->display = vaGetDisplayDRM(c->fd);
  int major, minor;
  if (!c->display) {
    fprintf(stderr, "misuse: no VA-API on %s\n", path ? path : "/dev/dri/renderD128");
    exit(2);
  }
  if (!accepted(c, vaInitialize(c->display, &major, &minor), "vaInitialize")) return false;
  if (!make_config(c)) return false;
  unsigned full_width = width_mbs * 16, full_height = height_mbs * 16;
  unsigned input_width = is("input-small") ? width / 2 : width;
  for (int i = 0; i < input_count; i++) {
    bool import = is("import") || is("import-fourcc") || is("import-beyond");
    if (import) {
      if (!import_input(c, i)) return false;
    } else if (!accepted(c, vaCreateSurfaces(c->display, VA_RT_FORMAT_YUV420, input_width, height, &c->inputs[i], 1,
                                             NULL, 0), "vaCreateSurfaces")) {
      return false;
    }
  }
  if (is("reconstructed-small")) full_width -= 16;
  if (!accepted(c, vaCreateSurfaces(c->display, VA_RT_FORMAT_YUV420, full_width, full_height, c->reconstructed, 2, NULL,
                                    0), "vaCreateSurfaces") ||
      !accepted(c, vaCreateContext(c->display, c->config, width, height, VA_PROGRESSIVE, NULL, 0, &c->context),
                "vaCreateContext")) {
    return false;
  }
  for (int i = 0; i < input_count; i++) {
    if (!accepted(c, vaCreateBuffer(c->display, c->context, VAEncCodedBufferType, 1 << 20, 1, NULL, &c->coded[i]),
                  "vaCreateBuffer")) {
      return false;
    }
  }
  return true;
}

void teardown(struct client *c) {
  if (c->begun) vaEndPicture(c->display, c->context);
  if (c->mapped) vaUnmapBuffer(c->display, c->coded[0]);
  for (int i = 0; i < input_count; i++) {
    if (c->inputs[i] != VA_INVALID_ID && !is("context-in-picture")) vaSyncSurface(c->display, c->inputs[i]);
  }
  for (int i = 0; i < input_count; i++) {
    if (c->coded[i] != VA_INVALID_ID && !is("leak")) vaDestroyBuffer(c->display, c->coded[i]);
  }
  if (c->context != VA_INVALID_ID) vaDestroyContext(c->display, c->context);
  for (int i = 0; i < 2; i++) {
    if (c->inputs[i] != VA_INVALID_ID) vaDestroySurfaces(c->display, &c->inputs[i], 1);
    if (c->reconstructed[i] != VA_INVALID_ID) vaDestroySurfaces(c->display, &c->reconstructed[i], 1);
  }
  if (c->config != VA_INVALID_ID) vaDestroyConfig(c->display, c->config);
  vaTerminate(c->display);
  close(c->fd);
}

// A picture that moves, with no two rows alike; with noise where there must be something to spend bits on.
static void draw(uint8_t *luma, uint32_t luma_pitch, uint8_t *chroma, uint32_t chroma_pitch, int picture) {
  for (uint32_t y = 0; y < height; y++) {
    for (uint32_t x = 0; x < width; x++) {
      uint32_t noise = is("rates") ? (x * 7919 + y * 104729 + (unsigned)picture * 15485863) * 2654435761u >> 27 : 0;
      luma[y * luma_pitch + x] = (uint8_t)(16 + ((x + 3 * (unsigned)picture) * 5 / 4 + y / 2) % 186 + noise);
    }
  }
  for (uint32_t y = 0; y < height / 2; y++) {
    for (uint32_t x = 0; x < width / 2; x++) {
      chroma[y * chroma_pitch + 2 * x] = (uint8_t)(64 + (y + (unsigned)picture) % 128);
      chroma[y * chroma_pitch + 2 * x + 1] = (uint8_t)(64 + (x + 2 * (unsigned)picture) % 128);
    }
  }
}

static void record(struct client *c, int picture) {
  static uint8_t frame[width * height * 3 / 2];
  if (!c->pictures) return;
  draw(frame, width, frame + width * height, width, picture);
  fwrite(frame, 1, sizeof frame, c->pictures);
}

// What import_input made: this client's own view of the memory that the device reads.
static struct { uint8_t *memory; uint32_t pitch, chroma_offset, size; } imported[input_count];

bool import_input(struct client *c, int input) {
  uint32_t pitch = width + 22, offset = pitch * (height + 3), size = offset + pitch * height / 2;
  int fd = memfd_create("picture", MFD_CLOEXEC);
  if (ftruncate(fd, size) != 0) return false;
  imported[input].memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  imported[input].pitch = pitch;
  imported[input].chroma_offset = offset;
  imported[input].size = size;
  VADRMPRIMESurfaceDescriptor d = {.fourcc = is("import-fourcc") ? VA_FOURCC_YUY2 : VA_FOURCC_NV12,
                                   .width = width,
                                   .height = height,
                                   .num_objects = 1,
                                   .objects[0] = {.fd = fd, .size = size},
                                   .num_layers = 2,
                                   .layers[0] = {.drm_format = 'R' | '8' << 8 | ' ' << 16 | ' ' << 24,
                                                 .num_planes = 1,
                                                 .pitch[0] = pitch},
                                   .layers[1] = {.drm_format = 'G' | 'R' << 8 | '8' << 16 | '8' << 24,
                                                 .num_planes = 1,
                                                 .offset[0] = is("import-beyond") ? size - 64 : offset,
                                                 .pitch[0] = pitch}};
  VASurfaceAttrib attributes[] = {
      {.type = VASurfaceAttribMemoryType,
       .flags = VA_SURFACE_ATTRIB_SETTABLE,
       .value = {.type = VAGenericValueTypeInteger, .value.i = VA_SURFACE_ATTRIB_MEM_TYPE_DRM_PRIME_2}},
      {.type = VASurfaceAttribExternalBufferDescriptor,
       .flags = VA_SURFACE_ATTRIB_SETTABLE,
       .value = {.type = VAGenericValueTypePointer, .value.p = &d}}};
  bool good = accepted(c, vaCreateSurfaces(c->display, VA_RT_FORMAT_YUV420, width, height, &c->inputs[input], 1,
                                           attributes, 2), "vaCreateSurfaces");
  close(fd);
  if (!good) c->inputs[input] = VA_INVALID_ID;
  return good;
}

bool upload(struct client *c, int input, int picture) {
  VAImage image;
  uint8_t *data;
  if (is("input-small")) return true;
  if (imported[input].memory) {
    draw(imported[input].memory, imported[input].pitch, imported[input].memory + imported[input].chroma_offset,
         imported[input].pitch, picture);
    record(c, picture);
    return true;
  }
  if (!accepted(c, vaDeriveImage(c->display, c->inputs[input], &image), "vaDeriveImage") ||
      !accepted(c, vaMapBuffer(c->display, image.buf, (void **)&data), "vaMapBuffer")) {
    return false;
  }
  draw(data + image.offsets[0], image.pitches[0], data + image.offsets[1], image.pitches[1], picture);
  vaUnmapBuffer(c->display, image.buf);
  record(c, picture);
  if (is("input-derived")) {
    bool good = accepted(c, vaBeginPicture(c->display, c->context, c->inputs[input]), "vaBeginPicture");
    vaDestroyImage(c->display, image.image_id);
    return good;
  }
  return accepted(c, vaDestroyImage(c->display, image.image_id), "vaDestroyImage");
}
