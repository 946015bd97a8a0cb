// Images: NV12, derived from a surface or with memory of their own.
#include <stdlib.h>
#include <string.h>

#include "strict.h"

static const VAImageFormat nv12 = {.fourcc = VA_FOURCC_NV12, .byte_order = VA_LSB_FIRST, .bits_per_pixel = 12};

static VAStatus query_formats(VADriverContextP va, VAImageFormat *list, int *count) {
  (void)va;
  list[0] = nv12;
  *count = 1;
  return VA_STATUS_SUCCESS;
}

static VAStatus create_image(VADriverContextP va, VAImageFormat *format, int width, int height, VAImage *out) {
  struct driver *driver = driver_of(va);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  if (format->fourcc != VA_FOURCC_NV12) {
    violation(driver, "image-format: %#x, only NV12 is offered", format->fourcc);
    return VA_STATUS_ERROR_INVALID_IMAGE_FORMAT;
  }
  if (width <= 0 || height <= 0 || width > 16384 || height > 16384) {
    violation(driver, "size: image of %dx%d", width, height);
    return VA_STATUS_ERROR_RESOLUTION_NOT_SUPPORTED;
  }
  pthread_mutex_lock(&driver->lock);
  struct image *image = object_new(driver, kind_image, sizeof *image);
  // Laid out as a surface of the size is, which GStreamer takes for granted; with an odd pitch it is not.
  bool odd = driver->knobs.odd_pitch;
  uint32_t pitch = odd ? ((uint32_t)width + 15) / 16 * 16 + 25 * 2 : ((uint32_t)width + 63) / 64 * 64;
  uint32_t rows = odd ? ((uint32_t)height + 1) / 2 * 2 : ((uint32_t)height + 15) / 16 * 16;
  uint32_t gap = driver->knobs.odd_pitch ? 5 * 37 * 2 : 0;
  image->derived_from = VA_INVALID_ID;
  image->va.format = nv12;
  image->va.width = (uint16_t)width;
  image->va.height = (uint16_t)height;
  image->va.num_planes = 2;
  image->va.pitches[0] = image->va.pitches[1] = pitch;
  image->va.offsets[1] = pitch * rows + gap;
  image->va.data_size = image->va.offsets[1] + pitch * rows / 2;
  image->va.image_id = image->object.id;
  struct buffer *buffer = buffer_new(driver, VAImageBufferType, image->va.data_size, 1);
  buffer->image = image->object.id;
  image->va.buf = buffer->object.id;
  *out = image->va;
  pthread_mutex_unlock(&driver->lock);
  return VA_STATUS_SUCCESS;
}

static VAStatus derive_image(VADriverContextP va, VASurfaceID id, VAImage *out) {
  struct driver *driver = driver_of(va);
  hang(at_derive, frames_begun + 1, UINT64_MAX);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  if (!driver->knobs.derive || fails(at_derive, frames_begun + 1)) return VA_STATUS_ERROR_OPERATION_FAILED;
  pthread_mutex_lock(&driver->lock);
  VAStatus status = VA_STATUS_SUCCESS;
  struct surface *surface = object_find(driver, kind_surface, id);
  if (!surface) {
    violation(driver, "bad-id: vaDeriveImage of surface %#x", id);
    status = VA_STATUS_ERROR_INVALID_SURFACE;
  } else if (!surface->memory) {
    status = VA_STATUS_ERROR_OPERATION_FAILED;  // imported memory is the exporter's to map
  } else {
    struct image *image = object_new(driver, kind_image, sizeof *image);
    image->derived_from = id;
    image->va.format = nv12;
    image->va.width = (uint16_t)surface->width;
    image->va.height = (uint16_t)surface->height;
    image->va.num_planes = 2;
    image->va.pitches[0] = surface->pitch;
    image->va.pitches[1] = surface->chroma_pitch;
    image->va.offsets[1] = (uint32_t)surface->chroma_offset;
    image->va.data_size = (uint32_t)surface->memory_size;
    image->va.image_id = image->object.id;
    struct buffer *buffer = buffer_new(driver, VAImageBufferType, 0, 1);
    buffer->data = surface->memory;
    buffer->element_size = image->va.data_size;
    buffer->surface = id;
    buffer->image = image->object.id;
    image->va.buf = buffer->object.id;
    surface->derived++;
    *out = image->va;
  }
  pthread_mutex_unlock(&driver->lock);
  return status;
}

void image_release(struct driver *driver, struct image *image) {
  struct buffer *buffer = object_find(driver, kind_buffer, image->va.buf);
  struct surface *surface = object_find(driver, kind_surface, image->derived_from);
  if (image->derived_from != VA_INVALID_ID) {
    if (surface) surface->derived--;
    if (buffer) buffer->data = NULL;
  }
  if (buffer) buffer_release(driver, buffer);
  object_free(driver, &image->object);
}

static VAStatus destroy_image(VADriverContextP va, VAImageID id) {
  struct driver *driver = driver_of(va);
  pthread_mutex_lock(&driver->lock);
  struct image *image = object_find(driver, kind_image, id);
  struct buffer *buffer = image ? object_find(driver, kind_buffer, image->va.buf) : NULL;
  VAStatus status = image ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_INVALID_IMAGE;
  if (!image) {
    violation(driver, "bad-id: vaDestroyImage of %#x", id);
  } else {
    if (buffer && buffer->mapped) violation(driver, "image-mapped: image %#x destroyed while its buffer is mapped", id);
    image_release(driver, image);
  }
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static void copy_rows(uint8_t *to, uint32_t to_pitch, const uint8_t *from, uint32_t from_pitch, uint32_t bytes,
                      uint32_t rows) {
  for (uint32_t y = 0; y < rows; y++) memcpy(to + (size_t)y * to_pitch, from + (size_t)y * from_pitch, bytes);
}

// The rectangle must lie in both, start at even positions and not be scaled.
static VAStatus transfer(struct driver *driver, VASurfaceID surface_id, VAImageID image_id, const int s[4],
                         const int i[4], bool put) {
  struct surface *surface = object_find(driver, kind_surface, surface_id);
  struct image *image = object_find(driver, kind_image, image_id);
  const char *name = put ? "vaPutImage" : "vaGetImage";
  if (!surface || !image) {
    violation(driver, "bad-id: %s of surface %#x, image %#x", name, surface_id, image_id);
    return surface ? VA_STATUS_ERROR_INVALID_IMAGE : VA_STATUS_ERROR_INVALID_SURFACE;
  }
  struct buffer *buffer = object_find(driver, kind_buffer, image->va.buf);
  if (s[2] != i[2] || s[3] != i[3] || s[2] <= 0 || s[3] <= 0 || s[0] < 0 || s[1] < 0 || i[0] < 0 || i[1] < 0 ||
      (s[0] | s[1] | i[0] | i[1]) & 1 || (unsigned)(s[0] + s[2]) > surface->width ||
      (unsigned)(s[1] + s[3]) > surface->height || i[0] + i[2] > image->va.width || i[1] + i[3] > image->va.height) {
    violation(driver, "image-rectangle: %s of %dx%d+%d+%d and %dx%d+%d+%d", name, s[2], s[3], s[0], s[1], i[2], i[3],
              i[0], i[1]);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  if (buffer->mapped) {
    violation(driver, "image-mapped: %s of an image whose buffer is mapped", name);
    return VA_STATUS_ERROR_OPERATION_FAILED;
  }
  if (surface->begun_by != VA_INVALID_ID || (surface->in_flight && put)) {
    violation(driver, "surface-in-flight: %s on surface %#x", name, surface_id);
    return VA_STATUS_ERROR_SURFACE_BUSY;
  }
  surface_access(surface, true, put);
  for (int plane = 0; plane < 2; plane++) {
    uint32_t step = plane ? 2 : 1, bytes = ((uint32_t)s[2] + (step - 1)) / step * step;
    uint32_t rows = ((uint32_t)s[3] + step - 1) / step;
    uint32_t surface_pitch = plane ? surface->chroma_pitch : surface->pitch, image_pitch = image->va.pitches[plane];
    uint8_t *on_surface = (plane ? surface->chroma : surface->luma) + (uint32_t)s[1] / step * surface_pitch + s[0];
    uint8_t *on_image = buffer->data + image->va.offsets[plane] + (uint32_t)i[1] / step * image_pitch + i[0];
    if (put) {
      copy_rows(on_surface, surface_pitch, on_image, image_pitch, bytes, rows);
    } else {
      copy_rows(on_image, image_pitch, on_surface, surface_pitch, bytes, rows);
    }
  }
  surface_access(surface, false, put);
  return VA_STATUS_SUCCESS;
}

static VAStatus get_image(VADriverContextP va, VASurfaceID surface, int x, int y, unsigned int width,
                          unsigned int height, VAImageID image) {
  struct driver *driver = driver_of(va);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  int on_surface[4] = {x, y, (int)width, (int)height}, on_image[4] = {0, 0, (int)width, (int)height};
  pthread_mutex_lock(&driver->lock);
  VAStatus status = transfer(driver, surface, image, on_surface, on_image, false);
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static VAStatus put_image(VADriverContextP va, VASurfaceID surface, VAImageID image, int sx, int sy, unsigned int sw,
                          unsigned int sh, int dx, int dy, unsigned int dw, unsigned int dh) {
  struct driver *driver = driver_of(va);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  int on_surface[4] = {dx, dy, (int)dw, (int)dh}, on_image[4] = {sx, sy, (int)sw, (int)sh};
  pthread_mutex_lock(&driver->lock);
  VAStatus status = transfer(driver, surface, image, on_surface, on_image, true);
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static VAStatus set_palette(VADriverContextP va, VAImageID image, unsigned char *palette) {
  (void)va, (void)image, (void)palette;
  return VA_STATUS_ERROR_UNIMPLEMENTED;
}

void image_functions(struct VADriverVTable *table) {
  table->vaQueryImageFormats = query_formats;
  table->vaCreateImage = create_image;
  table->vaDeriveImage = derive_image;
  table->vaDestroyImage = destroy_image;
  table->vaGetImage = get_image;
  table->vaPutImage = put_image;
  table->vaSetImagePalette = set_palette;
}
