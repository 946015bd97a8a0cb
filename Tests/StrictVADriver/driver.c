// The driver's entry points, its function table, and what is left over when it goes.
#include <stdlib.h>

#include "strict.h"

struct leaks { struct driver *driver; const char *name; };

static void report_leak(struct object *object, void *argument) {
  struct leaks *leaks = argument;
  if (object->kind == kind_buffer && ((struct buffer *)object)->type == VAImageBufferType) return;
  violation(leaks->driver, "leak: %s %#x is alive at vaTerminate", leaks->name, object->id);
}

static void release(struct object *object, void *argument) {
  struct driver *driver = argument;
  switch (object->kind) {
    case kind_image: image_release(driver, (struct image *)object); break;
    case kind_buffer: buffer_release(driver, (struct buffer *)object); break;
    case kind_surface: surface_release(driver, (struct surface *)object); break;
    case kind_context: context_release(driver, (struct context *)object); break;
    case kind_config: object_free(driver, object); break;
  }
}

static VAStatus terminate(VADriverContextP va) {
  struct driver *driver = driver_of(va);
  static const struct { enum kind kind; const char *name; } kinds[] = {{kind_image, "image"},
                                                                      {kind_buffer, "buffer"},
                                                                      {kind_context, "context"},
                                                                      {kind_surface, "surface"},
                                                                      {kind_config, "config"}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    struct leaks leaks = {driver, kinds[i].name};
    object_each(driver, kinds[i].kind, report_leak, &leaks);
    object_each(driver, kinds[i].kind, release, driver);
  }
  pthread_mutex_destroy(&driver->lock);
  free(driver);
  va->pDriverData = NULL;
  return VA_STATUS_SUCCESS;
}

// What libva wants in every table and this driver has no use for.
static VAStatus no_formats(VADriverContextP va, VAImageFormat *list, unsigned int *flags, unsigned int *count) {
  (void)va, (void)list, (void)flags;
  *count = 0;
  return VA_STATUS_SUCCESS;
}
static VAStatus no_create(VADriverContextP va, VAImageID image, VASubpictureID *id) {
  (void)va, (void)image, (void)id;
  return VA_STATUS_ERROR_UNIMPLEMENTED;
}
static VAStatus no_destroy(VADriverContextP va, VASubpictureID id) {
  (void)va, (void)id;
  return VA_STATUS_ERROR_UNIMPLEMENTED;
}
static VAStatus no_image(VADriverContextP va, VASubpictureID id, VAImageID image) {
  (void)va, (void)id, (void)image;
  return VA_STATUS_ERROR_UNIMPLEMENTED;
}
static VAStatus no_chromakey(VADriverContextP va, VASubpictureID id, unsigned int low, unsigned int high,
                             unsigned int mask) {
  (void)va, (void)id, (void)low, (void)high, (void)mask;
  return VA_STATUS_ERROR_UNIMPLEMENTED;
}
static VAStatus no_alpha(VADriverContextP va, VASubpictureID id, float alpha) {
  (void)va, (void)id, (void)alpha;
  return VA_STATUS_ERROR_UNIMPLEMENTED;
}
static VAStatus no_associate(VADriverContextP va, VASubpictureID id, VASurfaceID *surfaces, int count, int16_t sx,
                             int16_t sy, uint16_t sw, uint16_t sh, int16_t dx, int16_t dy, uint16_t dw, uint16_t dh,
                             uint32_t flags) {
  (void)va, (void)id, (void)surfaces, (void)count, (void)sx, (void)sy, (void)sw, (void)sh;
  (void)dx, (void)dy, (void)dw, (void)dh, (void)flags;
  return VA_STATUS_ERROR_UNIMPLEMENTED;
}
static VAStatus no_deassociate(VADriverContextP va, VASubpictureID id, VASurfaceID *surfaces, int count) {
  (void)va, (void)id, (void)surfaces, (void)count;
  return VA_STATUS_ERROR_UNIMPLEMENTED;
}
static VAStatus no_query_display(VADriverContextP va, VADisplayAttribute *list, int *count) {
  (void)va, (void)list;
  *count = 0;
  return VA_STATUS_SUCCESS;
}
static VAStatus no_display(VADriverContextP va, VADisplayAttribute *list, int count) {
  (void)va, (void)list, (void)count;
  return VA_STATUS_ERROR_UNIMPLEMENTED;
}

static void unused_functions(struct VADriverVTable *table) {
  table->vaQuerySubpictureFormats = no_formats;
  table->vaCreateSubpicture = no_create;
  table->vaDestroySubpicture = no_destroy;
  table->vaSetSubpictureImage = no_image;
  table->vaSetSubpictureChromakey = no_chromakey;
  table->vaSetSubpictureGlobalAlpha = no_alpha;
  table->vaAssociateSubpicture = no_associate;
  table->vaDeassociateSubpicture = no_deassociate;
  table->vaQueryDisplayAttributes = no_query_display;
  table->vaGetDisplayAttributes = no_display;
  table->vaSetDisplayAttributes = no_display;
}

static VAStatus initialize(VADriverContextP va) {
  struct driver *driver = calloc(1, sizeof *driver);
  if (!driver) return VA_STATUS_ERROR_ALLOCATION_FAILED;
  knobs_read(&driver->knobs);
  control_poll();
  hang(at_init, UINT64_MAX, UINT64_MAX);
  if (injection.lost) {
    // A lost device comes back only after it was asked for often enough.
    if (injection.lost_reopens > 0) {
      injection.lost_reopens--;
      free(driver);
      return VA_STATUS_ERROR_OPERATION_FAILED;
    }
    injection.lost = false;
  }
  if (fails(at_init, UINT64_MAX)) {
    free(driver);
    return VA_STATUS_ERROR_OPERATION_FAILED;
  }
  driver->losses = injection.losses;
  pthread_mutex_init(&driver->lock, NULL);
  va->pDriverData = driver;
  va->version_major = VA_MAJOR_VERSION;
  va->version_minor = VA_MINOR_VERSION;
  va->max_profiles = 1 + max_profiles;
  va->max_entrypoints = 4;
  va->max_attributes = VAConfigAttribTypeMax;
  va->max_image_formats = 1;
  va->max_subpic_formats = 1;
  va->max_display_attributes = 1;
  va->str_vendor = driver->knobs.vendor;
  struct VADriverVTable *table = va->vtable;
  table->vaTerminate = terminate;
  config_functions(table);
  surface_functions(table);
  image_functions(table);
  buffer_functions(table);
  picture_functions(table);
  sync_functions(table);
  if (!driver->knobs.sync_buffer) table->vaSyncBuffer = NULL;
  unused_functions(table);
  va->vtable_vpp->vaQueryVideoProcFilters = process_filters;
  va->vtable_vpp->vaQueryVideoProcFilterCaps = process_filter_caps;
  va->vtable_vpp->vaQueryVideoProcPipelineCaps = process_caps;
  return VA_STATUS_SUCCESS;
}

// libva asks for the entry point of its own minor version first, then for lower ones.
#define ENTRY(minor)                                                                        \
  VAStatus __vaDriverInit_1_##minor(VADriverContextP va);                                   \
  VAStatus __attribute__((visibility("default"))) __vaDriverInit_1_##minor(VADriverContextP va) { \
    return initialize(va);                                                                  \
  }
ENTRY(0) ENTRY(1) ENTRY(2) ENTRY(3) ENTRY(4) ENTRY(5) ENTRY(6) ENTRY(7) ENTRY(8) ENTRY(9) ENTRY(10)
ENTRY(11) ENTRY(12) ENTRY(13) ENTRY(14) ENTRY(15) ENTRY(16) ENTRY(17) ENTRY(18) ENTRY(19) ENTRY(20)
ENTRY(21) ENTRY(22)
