// Surfaces: NV12 in plain memory or in an imported DMA-BUF.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "strict.h"

enum { max_surface = 16384 };

static uint32_t align(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

// Memory of the driver's own, whole macroblocks, so that reading a padded picture never leaves it.
static bool surface_allocate(struct driver *driver, struct surface *surface) {
  uint32_t width = align(surface->width, 16), height = align(surface->height, 16);
  surface->pitch = driver->knobs.odd_pitch ? width + 37 * 2 : align(width, 64);
  surface->chroma_pitch = surface->pitch;
  // With an odd pitch the planes are not next to each other either.
  surface->chroma_offset = (size_t)surface->pitch * height + (driver->knobs.odd_pitch ? 3 * 37 * 16 : 0);
  surface->memory_size = surface->chroma_offset + (size_t)surface->chroma_pitch * height / 2;
  surface->memory = malloc(surface->memory_size);
  if (!surface->memory) return false;
  // Not black and not zero: a client that reads or codes what it never wrote is seen at once.
  memset(surface->memory, 0xA5, surface->memory_size);
  surface->luma = surface->memory;
  surface->chroma = surface->memory + surface->chroma_offset;
  return true;
}

void surface_release(struct driver *driver, struct surface *surface) {
  for (int i = 0; i < surface->map_count; i++) {
    munmap(surface->map[i].address, surface->map[i].size);
    close(surface->map[i].fd);
  }
  free(surface->memory);
  object_free(driver, &surface->object);
}

static VAStatus create_surfaces2(VADriverContextP va, unsigned int format, unsigned int width, unsigned int height,
                                 VASurfaceID *list, unsigned int count, VASurfaceAttrib *attributes,
                                 unsigned int attribute_count) {
  struct driver *driver = driver_of(va);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  if (!(format & VA_RT_FORMAT_YUV420)) {
    violation(driver, "rt-format: surfaces of format %#x", format);
    return VA_STATUS_ERROR_UNSUPPORTED_RT_FORMAT;
  }
  // What may be encoded is the config's business; memory may be larger.
  if (width == 0 || height == 0 || width > max_surface || height > max_surface) {
    violation(driver, "size: surface of %ux%u, the limit is %ux%u", width, height, max_surface, max_surface);
    return VA_STATUS_ERROR_RESOLUTION_NOT_SUPPORTED;
  }
  uint32_t memory_type = VA_SURFACE_ATTRIB_MEM_TYPE_VA;
  const VADRMPRIMESurfaceDescriptor *descriptor = NULL;
  for (unsigned int i = 0; i < attribute_count; i++) {
    const VASurfaceAttrib *attribute = &attributes[i];
    if (!(attribute->flags & VA_SURFACE_ATTRIB_SETTABLE)) continue;
    if (attribute->type == VASurfaceAttribPixelFormat && attribute->value.value.i != VA_FOURCC_NV12) {
      violation(driver, "pixel-format: %#x, only NV12 is offered", attribute->value.value.i);
      return VA_STATUS_ERROR_UNSUPPORTED_RT_FORMAT;
    }
    if (attribute->type == VASurfaceAttribMemoryType) memory_type = (uint32_t)attribute->value.value.i;
    if (attribute->type == VASurfaceAttribExternalBufferDescriptor) descriptor = attribute->value.value.p;
  }
  bool import = memory_type == VA_SURFACE_ATTRIB_MEM_TYPE_DRM_PRIME_2;
  if (import && !driver->knobs.import) return VA_STATUS_ERROR_UNSUPPORTED_MEMORY_TYPE;
  if ((!import && memory_type != VA_SURFACE_ATTRIB_MEM_TYPE_VA) || (import && (!descriptor || count != 1))) {
    violation(driver, "memory-type: %#x with%s descriptor, %u surfaces", memory_type, descriptor ? "" : "out", count);
    return import ? VA_STATUS_ERROR_INVALID_PARAMETER : VA_STATUS_ERROR_UNSUPPORTED_MEMORY_TYPE;
  }
  VAStatus status = VA_STATUS_SUCCESS;
  pthread_mutex_lock(&driver->lock);
  for (unsigned int i = 0; i < count && status == VA_STATUS_SUCCESS; i++) {
    struct surface *surface = object_new(driver, kind_surface, sizeof *surface);
    surface->width = width;
    surface->height = height;
    surface->begun_by = VA_INVALID_ID;
    if (import) {
      status = surface_import(driver, surface, descriptor);
    } else if (!surface_allocate(driver, surface)) {
      status = VA_STATUS_ERROR_ALLOCATION_FAILED;
    }
    list[i] = surface->object.id;
    if (status != VA_STATUS_SUCCESS) {
      surface_release(driver, surface);
      while (i > 0) surface_release(driver, object_find(driver, kind_surface, list[--i]));
      break;
    }
  }
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static VAStatus create_surfaces(VADriverContextP va, int width, int height, int format, int count,
                                VASurfaceID *list) {
  if (width < 0 || height < 0 || count < 0) return VA_STATUS_ERROR_INVALID_PARAMETER;
  return create_surfaces2(va, (unsigned)format, (unsigned)width, (unsigned)height, list, (unsigned)count, NULL, 0);
}

static VAStatus destroy_surfaces(VADriverContextP va, VASurfaceID *list, int count) {
  struct driver *driver = driver_of(va);
  VAStatus status = VA_STATUS_SUCCESS;
  pthread_mutex_lock(&driver->lock);
  for (int i = 0; i < count; i++) {
    struct surface *surface = object_find(driver, kind_surface, list[i]);
    if (!surface) {
      violation(driver, "bad-id: vaDestroySurfaces of %#x", list[i]);
      status = VA_STATUS_ERROR_INVALID_SURFACE;
    } else if (surface->derived ||
               ((surface->begun_by != VA_INVALID_ID || surface->in_flight) && !was_lost(driver))) {
      violation(driver, "surface-in-use: surface %#x destroyed while %s", list[i],
                surface->derived ? "an image derived from it lives" : "the device works on it");
      status = VA_STATUS_ERROR_SURFACE_BUSY;
    } else {
      surface_release(driver, surface);
    }
  }
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static VAStatus query_attributes(VADriverContextP va, VAConfigID id, VASurfaceAttrib *list, unsigned int *count) {
  struct driver *driver = driver_of(va);
  pthread_mutex_lock(&driver->lock);
  const struct config *config = object_find(driver, kind_config, id);
  bool encodes = config && config->entrypoint != VAEntrypointVideoProc;
  pthread_mutex_unlock(&driver->lock);
  if (!config) {
    violation(driver, "bad-id: vaQuerySurfaceAttributes of config %#x", id);
    return VA_STATUS_ERROR_INVALID_CONFIG;
  }
  const struct knobs *knobs = &driver->knobs;
  int32_t memory = VA_SURFACE_ATTRIB_MEM_TYPE_VA | (knobs->import ? VA_SURFACE_ATTRIB_MEM_TYPE_DRM_PRIME_2 : 0);
  const uint32_t both = VA_SURFACE_ATTRIB_GETTABLE | VA_SURFACE_ATTRIB_SETTABLE;
  uint32_t max_width = encodes ? knobs->max_width : max_surface, max_height = encodes ? knobs->max_height : max_surface;
#define INTEGER(v) {.type = VAGenericValueTypeInteger, .value.i = (int32_t)(v)}
  const VASurfaceAttrib all[] = {
      {.type = VASurfaceAttribPixelFormat, .flags = both, .value = INTEGER(VA_FOURCC_NV12)},
      {.type = VASurfaceAttribMinWidth, .flags = VA_SURFACE_ATTRIB_GETTABLE, .value = INTEGER(16)},
      {.type = VASurfaceAttribMinHeight, .flags = VA_SURFACE_ATTRIB_GETTABLE, .value = INTEGER(16)},
      {.type = VASurfaceAttribMaxWidth, .flags = VA_SURFACE_ATTRIB_GETTABLE, .value = INTEGER(max_width)},
      {.type = VASurfaceAttribMaxHeight, .flags = VA_SURFACE_ATTRIB_GETTABLE, .value = INTEGER(max_height)},
      {.type = VASurfaceAttribMemoryType, .flags = both, .value = INTEGER(memory)},
      {.type = VASurfaceAttribExternalBufferDescriptor,
       .flags = VA_SURFACE_ATTRIB_SETTABLE,
       .value = {.type = VAGenericValueTypePointer, .value.p = NULL}},
  };
  unsigned int room = *count, needed = sizeof all / sizeof *all - (knobs->import ? 0 : 1);
  *count = needed;
  if (!list) return VA_STATUS_SUCCESS;
  if (room < needed) return VA_STATUS_ERROR_MAX_NUM_EXCEEDED;
  memcpy(list, all, needed * sizeof *all);
  return VA_STATUS_SUCCESS;
}

void surface_functions(struct VADriverVTable *table) {
  table->vaCreateSurfaces = create_surfaces;
  table->vaCreateSurfaces2 = create_surfaces2;
  table->vaDestroySurfaces = destroy_surfaces;
  table->vaQuerySurfaceAttributes = query_attributes;
  table->vaExportSurfaceHandle = surface_export;
}
