// DRM PRIME: surfaces in memory that another device gave (here also a memfd, which tests can make).
#include <errno.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "strict.h"

#define FOURCC(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
static const uint32_t drm_r8 = FOURCC('R', '8', ' ', ' ');
static const uint32_t drm_gr88 = FOURCC('G', 'R', '8', '8');
static const uint32_t drm_nv12 = FOURCC('N', 'V', '1', '2');
static const uint64_t modifier_linear = 0, modifier_invalid = 0x00ffffffffffffffull;

static VAStatus refuse(struct driver *driver, const char *what, unsigned long long value) {
  violation(driver, "import: %s (%llu)", what, value);
  return VA_STATUS_ERROR_INVALID_PARAMETER;
}

VAStatus surface_import(struct driver *driver, struct surface *surface, const VADRMPRIMESurfaceDescriptor *d) {
  if (d->fourcc != VA_FOURCC_NV12) return refuse(driver, "fourcc is not NV12", d->fourcc);
  if (d->width != surface->width || d->height != surface->height) {
    return refuse(driver, "descriptor width contradicts the surface", d->width);
  }
  if (d->num_objects < 1 || d->num_objects > 2) return refuse(driver, "number of objects", d->num_objects);
  for (uint32_t i = 0; i < d->num_objects; i++) {
    uint64_t modifier = d->objects[i].drm_format_modifier;
    if (modifier != modifier_linear && modifier != modifier_invalid) return refuse(driver, "modifier", modifier);
  }
  uint32_t object[2], offset[2], pitch[2];
  if (d->num_layers == 1 && d->layers[0].drm_format == drm_nv12 && d->layers[0].num_planes == 2) {
    for (int i = 0; i < 2; i++) {
      object[i] = d->layers[0].object_index[i];
      offset[i] = d->layers[0].offset[i];
      pitch[i] = d->layers[0].pitch[i];
    }
  } else if (d->num_layers == 2 && d->layers[0].drm_format == drm_r8 && d->layers[1].drm_format == drm_gr88 &&
             d->layers[0].num_planes == 1 && d->layers[1].num_planes == 1) {
    for (int i = 0; i < 2; i++) {
      object[i] = d->layers[i].object_index[0];
      offset[i] = d->layers[i].offset[0];
      pitch[i] = d->layers[i].pitch[0];
    }
  } else {
    return refuse(driver, "layers are neither one of NV12 nor two of R8 and GR88", d->num_layers);
  }
  for (int i = 0; i < 2; i++) {
    uint32_t rows = i == 0 ? surface->height : (surface->height + 1) / 2;
    if (object[i] >= d->num_objects) return refuse(driver, "object index", object[i]);
    if (pitch[i] < (surface->width + 1) / 2 * 2) return refuse(driver, "pitch is less than the width", pitch[i]);
    uint64_t end = offset[i] + (uint64_t)pitch[i] * (rows - 1) + surface->width;
    if (end > d->objects[object[i]].size) return refuse(driver, "plane reaches past the object's end", end);
  }
  for (uint32_t i = 0; i < d->num_objects; i++) {
    struct stat status;
    size_t size = d->objects[i].size;
    if (fstat(d->objects[i].fd, &status) != 0) {
      return refuse(driver, "not an open descriptor", (unsigned)d->objects[i].fd);
    }
    if (status.st_size > 0 && (uint64_t)status.st_size < size) {
      return refuse(driver, "object is larger than its memory", size);
    }
    void *address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, d->objects[i].fd, 0);
    // A camera may export read-only memory: good enough to encode from.
    if (address == MAP_FAILED) address = mmap(NULL, size, PROT_READ, MAP_SHARED, d->objects[i].fd, 0);
    if (address == MAP_FAILED) return refuse(driver, "cannot be mapped, errno", (unsigned)errno);
    surface->map[i].address = address;
    surface->map[i].size = size;
    // The client may close its own descriptor as soon as the surface exists.
    surface->map[i].fd = dup(d->objects[i].fd);
    surface->map_count++;
  }
  surface->luma = (uint8_t *)surface->map[object[0]].address + offset[0];
  surface->chroma = (uint8_t *)surface->map[object[1]].address + offset[1];
  surface->pitch = pitch[0];
  surface->chroma_pitch = pitch[1];
  return VA_STATUS_SUCCESS;
}

void surface_access(struct surface *surface, bool begin, bool writes) {
  for (int i = 0; i < surface->map_count; i++) {
    struct dma_buf_sync sync = {.flags = (begin ? DMA_BUF_SYNC_START : DMA_BUF_SYNC_END) |
                                         (writes ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ)};
    // ENOTTY: a memfd, which needs none.
    while (ioctl(surface->map[i].fd, DMA_BUF_IOCTL_SYNC, &sync) != 0 && (errno == EINTR || errno == EAGAIN)) {}
  }
}

VAStatus surface_export(VADriverContextP va, VASurfaceID id, uint32_t memory_type, uint32_t flags, void *descriptor) {
  (void)va, (void)id, (void)memory_type, (void)flags, (void)descriptor;
  return VA_STATUS_ERROR_UNSUPPORTED_MEMORY_TYPE;
}
