// Profiles, entry points, attributes and configs.
#include <stdlib.h>

#include "strict.h"

bool encoding_offered(const struct knobs *knobs, VAProfile profile, VAEntrypoint entrypoint) {
  if (!(entrypoint == VAEntrypointEncSlice ? knobs->slice : entrypoint == VAEntrypointEncSliceLP && knobs->low_power)) {
    return false;
  }
  for (int i = 0; i < knobs->profile_count; i++) {
    if (knobs->profiles[i] == profile) return true;
  }
  return false;
}

static bool is_processing(const struct knobs *knobs, VAProfile profile, VAEntrypoint entrypoint) {
  return knobs->process && profile == VAProfileNone && entrypoint == VAEntrypointVideoProc;
}

static VAStatus query_profiles(VADriverContextP va, VAProfile *list, int *count) {
  struct driver *driver = driver_of(va);
  *count = 0;
  if (driver->knobs.process) list[(*count)++] = VAProfileNone;
  if (!driver->knobs.slice && !driver->knobs.low_power) return VA_STATUS_SUCCESS;
  for (int i = 0; i < driver->knobs.profile_count; i++) list[(*count)++] = driver->knobs.profiles[i];
  return VA_STATUS_SUCCESS;
}

static VAStatus query_entrypoints(VADriverContextP va, VAProfile profile, VAEntrypoint *list, int *count) {
  struct driver *driver = driver_of(va);
  *count = 0;
  if (profile == VAProfileNone && driver->knobs.process) list[(*count)++] = VAEntrypointVideoProc;
  if (encoding_offered(&driver->knobs, profile, VAEntrypointEncSlice)) list[(*count)++] = VAEntrypointEncSlice;
  if (encoding_offered(&driver->knobs, profile, VAEntrypointEncSliceLP)) list[(*count)++] = VAEntrypointEncSliceLP;
  return *count ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_UNSUPPORTED_PROFILE;
}

static uint32_t hevc_block_sizes(const struct knobs *knobs) {
  VAConfigAttribValEncHEVCBlockSizes sizes = {0};
  sizes.bits.log2_max_coding_tree_block_size_minus3 = knobs->hevc.log2_max_ctb - 3;
  sizes.bits.log2_min_coding_tree_block_size_minus3 = knobs->hevc.log2_min_ctb - 3;
  sizes.bits.log2_min_luma_coding_block_size_minus3 = knobs->hevc.log2_min_cb - 3;
  sizes.bits.log2_max_luma_transform_block_size_minus2 = 3;
  sizes.bits.max_max_transform_hierarchy_depth_inter = 3;
  sizes.bits.max_max_transform_hierarchy_depth_intra = 3;
  return sizes.value;
}

static uint32_t encode_attribute(const struct knobs *knobs, VAProfile profile, VAConfigAttribType type) {
  if (profile == VAProfileHEVCMain) {
    switch ((int)type) {
      case VAConfigAttribEncMaxSlices: return 1;
      case VAConfigAttribEncMaxRefFrames: return knobs->hevc.both_lists ? 1 | 1 << 16 : 1;
      case VAConfigAttribPredictionDirection:
        return VA_PREDICTION_DIRECTION_PREVIOUS | (knobs->hevc.both_lists ? VA_PREDICTION_DIRECTION_BI_NOT_EMPTY : 0);
      case VAConfigAttribEncHEVCFeatures: return knobs->hevc.told ? knobs->hevc.features.value : VA_ATTRIB_NOT_SUPPORTED;
      case VAConfigAttribEncHEVCBlockSizes: return knobs->hevc.told ? hevc_block_sizes(knobs) : VA_ATTRIB_NOT_SUPPORTED;
    }
  }
  switch ((int)type) {
    case VAConfigAttribRTFormat: return VA_RT_FORMAT_YUV420;
    case VAConfigAttribRateControl: return knobs->rate_controls;
    case VAConfigAttribEncMaxRefFrames: return 1;  // one in list 0, none in list 1
    case VAConfigAttribEncPackedHeaders: return knobs->packed ? knobs->packed : VA_ATTRIB_NOT_SUPPORTED;
    case VAConfigAttribEncMaxSlices: return max_slices;
    case VAConfigAttribEncSliceStructure:
      return VA_ENC_SLICE_STRUCTURE_EQUAL_MULTI_ROWS | VA_ENC_SLICE_STRUCTURE_POWER_OF_TWO_ROWS;
    case VAConfigAttribEncQualityRange: return knobs->quality ? knobs->quality : VA_ATTRIB_NOT_SUPPORTED;
    case VAConfigAttribMaxPictureWidth: return knobs->max_width;
    case VAConfigAttribMaxPictureHeight: return knobs->max_height;
    default: return VA_ATTRIB_NOT_SUPPORTED;
  }
}

static VAStatus get_attributes(VADriverContextP va, VAProfile profile, VAEntrypoint entrypoint,
                               VAConfigAttrib *list, int count) {
  struct driver *driver = driver_of(va);
  bool processing = is_processing(&driver->knobs, profile, entrypoint);
  if (!processing && !encoding_offered(&driver->knobs, profile, entrypoint)) {
    return VA_STATUS_ERROR_UNSUPPORTED_ENTRYPOINT;
  }
  pthread_mutex_lock(&driver->lock);
  for (int i = 0; i < count; i++) {
    if (!processing) {
      list[i].value = encode_attribute(&driver->knobs, profile, list[i].type);
    } else if (list[i].type == VAConfigAttribRTFormat) {
      list[i].value = VA_RT_FORMAT_YUV420;
    } else if (list[i].type == VAConfigAttribMaxPictureWidth) {
      list[i].value = driver->knobs.max_width;
    } else if (list[i].type == VAConfigAttribMaxPictureHeight) {
      list[i].value = driver->knobs.max_height;
    } else {
      list[i].value = VA_ATTRIB_NOT_SUPPORTED;
    }
    if (driver->asked_count < max_asked) {
      driver->asked[driver->asked_count].profile = profile;
      driver->asked[driver->asked_count].entrypoint = entrypoint;
      driver->asked[driver->asked_count++].type = list[i].type;
    }
  }
  pthread_mutex_unlock(&driver->lock);
  return VA_STATUS_SUCCESS;
}

static bool was_asked(const struct driver *driver, VAProfile profile, VAEntrypoint entrypoint,
                      VAConfigAttribType type) {
  if (driver->asked_count == max_asked) return true;  // the list is full: no longer known
  for (int i = 0; i < driver->asked_count; i++) {
    if (driver->asked[i].profile == profile && driver->asked[i].entrypoint == entrypoint &&
        driver->asked[i].type == type) {
      return true;
    }
  }
  return false;
}

static VAStatus check_attribute(struct driver *driver, const struct config *config, const VAConfigAttrib *attribute) {
  if (!was_asked(driver, config->profile, config->entrypoint, attribute->type)) {
    violation(driver, "attribute-not-asked: config attribute %d is set but was never asked for", attribute->type);
    return VA_STATUS_ERROR_INVALID_PARAMETER;
  }
  uint32_t value = attribute->value;
  switch ((int)attribute->type) {
    case VAConfigAttribRTFormat:
      if (value != VA_RT_FORMAT_YUV420) {
        violation(driver, "rt-format: %#x, only VA_RT_FORMAT_YUV420 is offered", value);
        return VA_STATUS_ERROR_UNSUPPORTED_RT_FORMAT;
      }
      return VA_STATUS_SUCCESS;
    case VAConfigAttribRateControl:
      if (__builtin_popcount(value) != 1 || !(value & driver->knobs.rate_controls)) {
        violation(driver, "rate-control-not-offered: %#x of %#x", value, driver->knobs.rate_controls);
        return VA_STATUS_ERROR_ATTR_NOT_SUPPORTED;
      }
      return VA_STATUS_SUCCESS;
    case VAConfigAttribEncPackedHeaders:
      if (value & ~driver->knobs.packed) {
        violation(driver, "packed-headers-not-offered: %#x of %#x", value, driver->knobs.packed);
        return VA_STATUS_ERROR_ATTR_NOT_SUPPORTED;
      }
      return VA_STATUS_SUCCESS;
    default:
      violation(driver, "attribute-not-settable: config attribute %d", attribute->type);
      return VA_STATUS_ERROR_ATTR_NOT_SUPPORTED;
  }
}

static VAStatus create_config(VADriverContextP va, VAProfile profile, VAEntrypoint entrypoint,
                              VAConfigAttrib *list, int count, VAConfigID *id) {
  struct driver *driver = driver_of(va);
  if (injection.lost) return VA_STATUS_ERROR_OPERATION_FAILED;
  bool processing = is_processing(&driver->knobs, profile, entrypoint);
  if (!processing && !encoding_offered(&driver->knobs, profile, entrypoint)) {
    violation(driver, "entry-point-not-offered: profile %d entry point %d", profile, entrypoint);
    return VA_STATUS_ERROR_UNSUPPORTED_ENTRYPOINT;
  }
  if (lies_at(&driver->knobs, lie_config, entrypoint)) return VA_STATUS_ERROR_UNSUPPORTED_ENTRYPOINT;
  pthread_mutex_lock(&driver->lock);
  struct config *config = object_new(driver, kind_config, sizeof *config);
  VAStatus status = VA_STATUS_SUCCESS;
  config->profile = profile;
  config->entrypoint = entrypoint;
  // With no attribute the driver's default stands: the first rate control that it has, no packed headers.
  config->rate_control = processing ? 0 : driver->knobs.rate_controls & -driver->knobs.rate_controls;
  if (!processing && driver->knobs.rate_controls & VA_RC_CQP) config->rate_control = VA_RC_CQP;
  for (int i = 0; i < count && status == VA_STATUS_SUCCESS; i++) {
    status = check_attribute(driver, config, &list[i]);
    if (list[i].type == VAConfigAttribRateControl) config->rate_control = list[i].value;
    if (list[i].type == VAConfigAttribEncPackedHeaders) config->packed = list[i].value;
  }
  if (status == VA_STATUS_SUCCESS) {
    *id = config->object.id;
  } else {
    object_free(driver, &config->object);
  }
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static VAStatus destroy_config(VADriverContextP va, VAConfigID id) {
  struct driver *driver = driver_of(va);
  pthread_mutex_lock(&driver->lock);
  struct config *config = object_find(driver, kind_config, id);
  VAStatus status = config ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_INVALID_CONFIG;
  if (!config) {
    violation(driver, "bad-id: vaDestroyConfig of %#x", id);
  } else if (config->contexts > 0) {
    violation(driver, "destroy-order: config %#x destroyed while a context of it lives", id);
    status = VA_STATUS_ERROR_OPERATION_FAILED;
  } else {
    object_free(driver, &config->object);
  }
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static VAStatus query_config(VADriverContextP va, VAConfigID id, VAProfile *profile, VAEntrypoint *entrypoint,
                             VAConfigAttrib *list, int *count) {
  struct driver *driver = driver_of(va);
  pthread_mutex_lock(&driver->lock);
  struct config *config = object_find(driver, kind_config, id);
  if (config) {
    *profile = config->profile;
    *entrypoint = config->entrypoint;
    *count = 0;
    list[(*count)++] = (VAConfigAttrib){VAConfigAttribRTFormat, VA_RT_FORMAT_YUV420};
    if (config->rate_control) list[(*count)++] = (VAConfigAttrib){VAConfigAttribRateControl, config->rate_control};
  }
  pthread_mutex_unlock(&driver->lock);
  return config ? VA_STATUS_SUCCESS : VA_STATUS_ERROR_INVALID_CONFIG;
}

void config_functions(struct VADriverVTable *table) {
  table->vaQueryConfigProfiles = query_profiles;
  table->vaQueryConfigEntrypoints = query_entrypoints;
  table->vaGetConfigAttributes = get_attributes;
  table->vaCreateConfig = create_config;
  table->vaDestroyConfig = destroy_config;
  table->vaQueryConfigAttributes = query_config;
}
