// Makes the mistake that its argument names, and prints which call was refused how.
//
//   misuse --list             every mistake, and the check that must find it
//   misuse NAME               exits 0 at the mistake, 3 if it came through to the end
//   misuse none OUT YUV       makes no mistake: writes the stream and the pictures in it
//   misuse import OUT YUV     the same, from imported memory
//   misuse rates              150 pictures each at 1 Mbit/s, 0.25 Mbit/s, and half the frame rate: prints the bytes
//   misuse reopen             no mistake, but opens the device again after a failure, ten times at most
//   misuse hevc-NAME          the same in HEVC
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "misuse.h"

static const char *wanted = "none", *mistake = "none";

static const struct { const char *name, *check; } mistakes[] = {
    {"no-sequence", "missing-sequence"},
    {"no-picture", "missing-picture"},
    {"no-slice", "missing-slice"},
    {"sequence-twice", "buffer-twice"},
    {"p-first", "stream-start"},
    {"no-packed-sequence", "packed-missing"},
    {"no-packed-picture", "packed-missing"},
    {"no-packed-slice", "packed-missing"},
    {"packed-unasked", "packed-not-configured"},
    {"packed-no-data", "packed-order"},
    {"packed-too-long", "packed"},
    {"packed-no-start-code", "packed"},
    {"attribute-unasked", "attribute-not-asked"},
    {"entry-point", "entry-point-not-offered"},
    {"frame-num", "frame_num"},
    {"idr-pic-id", "idr_pic_id"},
    {"order-count", "order-count"},
    {"order-count-lsb", "order-count"},
    {"reference-frames", "reference"},
    {"reference-missing", "reference"},
    {"reference-in-idr", "reference"},
    {"list-wrong", "RefPicList0"},
    {"list-empty", "slice"},
    {"list-of-two", "slice"},
    {"reconstructed-is-input", "reconstructed-is-input"},
    {"reconstructed-is-reference", "reconstructed-is-reference"},
    {"reconstructed-small", "dimensions"},
    {"input-small", "dimensions"},
    {"sequence-width", "sequence"},
    {"sequence-uncropped", "cropping"},
    {"level", "sequence"},
    {"sps-width", "packed-sps"},
    {"sps-crop", "packed-sps"},
    {"sps-level", "packed-sps"},
    {"sps-profile", "packed-sps"},
    {"pps-entropy", "packed-pps"},
    {"pps-qp", "packed-pps"},
    {"header-frame-num", "packed-slice"},
    {"header-qp", "packed-slice"},
    {"header-order-count", "packed-slice"},
    {"header-deblocking", "packed-slice"},
    {"header-type", "packed-slice"},
    {"header-bits", "packed-slice"},
    {"slice-gap", "slice-cover"},
    {"slice-short", "slice-cover"},
    {"slice-beyond", "slice-cover"},
    {"slice-type", "slice"},
    {"slice-qp", "slice"},
    {"no-rate", "rate"},
    {"no-hrd", "rate"},
    {"no-frame-rate", "rate"},
    {"rate-zero", "rate"},
    {"hrd-fullness", "rate"},
    {"rate-in-cqp", "rate"},
    {"misc-first", "misc-order"},
    {"quality-level", "quality-level"},
    {"surface-unknown", "bad-id"},
    {"surface-freed", "bad-id"},
    {"surface-is-buffer", "bad-id"},
    {"buffer-unknown", "bad-id"},
    {"coded-freed", "bad-id"},
    {"context-unknown", "bad-id"},
    {"buffer-size", "buffer-size"},
    {"map-before-sync", "coded-not-synced"},
    {"map-unused", "coded-not-synced"},
    {"coded-reused", "coded-in-use"},
    {"coded-mapped", "coded-in-use"},
    {"coded-destroyed", "coded-pending"},
    {"map-twice", "mapped-twice"},
    {"unmap-twice", "not-mapped"},
    {"destroy-mapped", "buffer-mapped"},
    {"render-mapped", "buffer-mapped"},
    {"input-in-flight", "surface-in-flight"},
    {"input-derived", "surface-mapped"},
    {"surface-destroyed-in-flight", "surface-in-use"},
    {"map-input-in-flight", "surface-in-flight"},
    {"begin-twice", "begun-twice"},
    {"end-unbegun", "not-begun"},
    {"render-unbegun", "not-begun"},
    {"context-in-flight", "context-in-flight"},
    {"context-in-picture", "begun-not-ended"},
    {"config-in-use", "destroy-order"},
    {"overflow-ignored", "overflow-ignored"},
    {"import-fourcc", "import"},
    {"import-beyond", "import"},
    {"leak", "leak"},
    {"hevc-no-sequence", "missing-sequence"},
    {"hevc-no-picture", "missing-picture"},
    {"hevc-no-slice", "missing-slice"},
    {"hevc-sequence-twice", "buffer-twice"},
    {"hevc-slice-twice", "slice-count"},
    {"hevc-p-first", "stream-start"},
    {"hevc-no-vps", "packed-missing"},
    {"hevc-no-packed-sequence", "packed-missing"},
    {"hevc-no-packed-picture", "packed-missing"},
    {"hevc-no-packed-slice", "packed-missing"},
    {"hevc-order-count", "order-count"},
    {"hevc-order-step", "order-count"},
    {"hevc-order-in-idr", "order-count"},
    {"hevc-reference-frames", "reference"},
    {"hevc-reference-missing", "reference"},
    {"hevc-reference-in-idr", "reference"},
    {"hevc-reference-after", "reference"},
    {"hevc-collocated", "reference"},
    {"hevc-list-wrong", "RefPicList0"},
    {"hevc-list-empty", "slice"},
    {"hevc-list-of-two", "slice"},
    {"hevc-list-other", "slice"},
    {"hevc-reconstructed-is-input", "reconstructed-is-input"},
    {"hevc-reconstructed-is-reference", "reconstructed-is-reference"},
    {"hevc-reconstructed-small", "dimensions"},
    {"hevc-input-small", "dimensions"},
    {"hevc-sequence-width", "sequence"},
    {"hevc-sequence-beyond", "sequence"},
    {"hevc-level", "sequence"},
    {"hevc-tier", "sequence"},
    {"hevc-profile", "sequence"},
    {"hevc-coding-block", "blocks"},
    {"hevc-transform-block", "blocks"},
    {"hevc-sao", "tools"},
    {"hevc-transform-skip", "tools"},
    {"hevc-no-qp-delta", "tools"},
    {"hevc-weighted", "picture"},
    {"hevc-unit-type", "picture"},
    {"hevc-coding-type", "picture"},
    {"hevc-slice-type", "slice"},
    {"hevc-slice-short", "slice-cover"},
    {"hevc-slice-qp", "slice"},
    {"hevc-slice-not-last", "slice"},
    {"hevc-merge", "slice"},
    {"hevc-no-temporal", "slice"},
    {"hevc-p-slice", "slice"},
    {"hevc-vps-level", "packed-vps"},
    {"hevc-sps-width", "packed-sps"},
    {"hevc-sps-level", "packed-sps"},
    {"hevc-sps-block", "packed-sps"},
    {"hevc-sps-vps", "packed-sps"},
    {"hevc-window", "cropping"},
    {"hevc-pps-qp", "packed-pps"},
    {"hevc-pps-signs", "packed-pps"},
    {"hevc-pps-sps", "packed-pps"},
    {"hevc-header-type", "packed-slice"},
    {"hevc-header-order-count", "packed-slice"},
    {"hevc-header-references", "packed-slice"},
    {"hevc-header-qp", "packed-slice"},
    {"hevc-header-merge", "packed-slice"},
    {"hevc-header-deblocking", "packed-slice"},
    {"hevc-header-bits", "packed-slice"},
    {"hevc-no-rate", "rate"},
    {"hevc-misc-first", "misc-order"},
    {"hevc-quality-level", "quality-level"},
    {"hevc-buffer-size", "buffer-size"},
    {"hevc-overflow-ignored", "overflow-ignored"},
};

bool is(const char *name) { return strcmp(mistake, name) == 0; }

bool accepted(struct client *client, VAStatus status, const char *call) {
  if (status != VA_STATUS_SUCCESS && client->call == NULL) {
    client->call = call;
    client->refused = status;
  }
  return status == VA_STATUS_SUCCESS;
}

// Mistakes made in the order of calls, after an IDR picture was coded and before it was read.
static bool wrong_calls_in_flight(struct client *c) {
  void *data;
  VABufferID extra;
  if (is("map-before-sync")) return accepted(c, vaMapBuffer(c->display, c->coded[0], &data), "vaMapBuffer");
  if (is("map-unused")) return accepted(c, vaMapBuffer(c->display, c->coded[1], &data), "vaMapBuffer");
  if (is("coded-destroyed")) {
    // Accepted, as by libva's drivers, but told.
    vaDestroyBuffer(c->display, c->coded[0]);
    c->coded[0] = VA_INVALID_ID;
    return false;
  }
  if (is("coded-reused")) {
    VABufferID second = c->coded[1];
    c->coded[1] = c->coded[0];
    bool good = upload(c, 1, 1) && submit(c, 1, 1, false, false);
    c->coded[1] = second;
    return good;
  }
  if (is("input-in-flight")) return accepted(c, vaBeginPicture(c->display, c->context, c->inputs[0]), "vaBeginPicture");
  if (is("map-input-in-flight")) {
    VAImage image;
    if (!accepted(c, vaDeriveImage(c->display, c->inputs[0], &image), "vaDeriveImage")) return false;
    bool good = accepted(c, vaMapBuffer(c->display, image.buf, &data), "vaMapBuffer");
    vaDestroyImage(c->display, image.image_id);
    return good;
  }
  if (is("surface-destroyed-in-flight")) {
    return accepted(c, vaDestroySurfaces(c->display, &c->inputs[0], 1), "vaDestroySurfaces");
  }
  if (is("context-in-flight")) {
    vaDestroyContext(c->display, c->context);
    c->context = VA_INVALID_ID;
    return false;
  }
  if (is("config-in-use")) return accepted(c, vaDestroyConfig(c->display, c->config), "vaDestroyConfig");
  if (is("end-unbegun")) return accepted(c, vaEndPicture(c->display, c->context), "vaEndPicture");
  if (is("render-unbegun")) {
    VAEncSequenceParameterBufferH264 sequence = {0};
    vaCreateBuffer(c->display, c->context, VAEncSequenceParameterBufferType, sizeof sequence, 1, &sequence, &extra);
    bool good = accepted(c, vaRenderPicture(c->display, c->context, &extra, 1), "vaRenderPicture");
    vaDestroyBuffer(c->display, extra);
    return good;
  }
  if (is("buffer-size")) {
    return accepted(c, vaCreateBuffer(c->display, c->context, VAEncSliceParameterBufferType, 16, 1, NULL, &extra),
                    "vaCreateBuffer");
  }
  return true;
}

// Mistakes made while the first picture's data are read.
static bool wrong_calls_mapped(struct client *c) {
  void *data;
  if (vaSyncSurface(c->display, c->inputs[0]) != VA_STATUS_SUCCESS) return false;
  if (is("map-twice") || is("unmap-twice") || is("destroy-mapped") || is("coded-mapped")) {
    c->mapped = vaMapBuffer(c->display, c->coded[0], &data) == VA_STATUS_SUCCESS;
  }
  if (is("map-twice")) return accepted(c, vaMapBuffer(c->display, c->coded[0], &data), "vaMapBuffer");
  if (is("unmap-twice")) {
    vaUnmapBuffer(c->display, c->coded[0]);
    c->mapped = false;
    return accepted(c, vaUnmapBuffer(c->display, c->coded[0]), "vaUnmapBuffer");
  }
  if (is("destroy-mapped")) {
    vaDestroyBuffer(c->display, c->coded[0]);
    c->coded[0] = VA_INVALID_ID;
    c->mapped = false;
    return false;
  }
  if (is("coded-mapped")) return upload(c, 0, 1) && submit(c, 0, 1, false, false);
  return true;
}

// A rate changed while running, by miscellaneous buffers alone.
static bool run_rates(struct client *c) {
  if (!setup(c)) return false;
  for (int i = 0; i < 450; i++) {
    if (i == 150) c->bit_rate = 250000;
    if (i == 300) c->frame_rate = 15;
    c->new_rates = i == 150 || i == 300;
    if (!upload(c, i % input_count, i) || !submit(c, i % input_count, i, i == 0, false)) return false;
    if (!collect(c, i % input_count, true)) return false;
    if (i % 150 != 149) continue;
    printf("rates: %llu\n", (unsigned long long)c->bytes);
    c->bytes = 0;
  }
  return true;
}

static bool run(struct client *c) {
  if (is("rates")) return run_rates(c);
  if (!setup(c)) return false;
  for (int i = 0; i < picture_total; i++) {
    int input = i % input_count;
    // The last picture begins a second coded video sequence; one mistake needs two of them in a row.
    bool idr = i == 0 || i == picture_total - 1 || (is("idr-pic-id") && i == 1) || (is("reference-in-idr") && i == 1);
    if (is("p-first")) idr = false;
    if (!upload(c, input, i)) return false;
    if (!submit(c, input, i, idr, false)) return false;
    if (i == 0 && (!wrong_calls_in_flight(c) || !wrong_calls_mapped(c))) return false;
    if (!collect(c, input, true)) return false;
    for (int again = 0; c->coded_status & VA_CODED_BUF_STATUS_SLICE_OVERFLOW_MASK; again++) {
      if (is("overflow-ignored")) break;
      if (again == 3) return false;
      if (!submit(c, input, i, idr, true) || !collect(c, input, true)) return false;
    }
  }
  return true;
}

int main(int count, char **arguments) {
  if (count < 2) {
    fprintf(stderr, "usage: misuse --list | NAME [STREAM PICTURES]\n");
    return 2;
  }
  wanted = mistake = arguments[1];
  bool hevc = strncmp(wanted, "hevc-", 5) == 0;
  if (hevc) mistake += 5;
  size_t mistake_count = sizeof mistakes / sizeof *mistakes;
  bool known = is("none") || is("import") || is("reopen") || is("rates");
  for (size_t i = 0; i < mistake_count; i++) {
    if (is("--list")) printf("%s %s\n", mistakes[i].name, mistakes[i].check);
    if (strcmp(wanted, mistakes[i].name) == 0) known = true;
  }
  if (is("--list")) return 0;
  if (!known) {
    fprintf(stderr, "misuse: no mistake is named %s; see --list\n", wanted);
    return 2;
  }
  // The driver reads its knobs at vaInitialize.
  if (is("overflow-ignored")) setenv("NIGHTJAR_VA_OVERFLOW_AT", "2", 1);
  if (is("p-slice")) setenv("NIGHTJAR_VA_HEVC", "both-lists", 1);
  if (is("no-qp-delta")) setenv("NIGHTJAR_VA_HEVC", "required", 1);
  struct client client = {.hevc = hevc, .rate_control = VA_RC_CQP, .bit_rate = 1000000, .frame_rate = 30};
  const char *in_rates[] = {"rates",     "no-rate",      "no-hrd",    "no-frame-rate",
                            "rate-zero", "hrd-fullness", "misc-first"};
  for (size_t i = 0; i < sizeof in_rates / sizeof *in_rates; i++) {
    if (is(in_rates[i])) client.rate_control = VA_RC_CBR;
  }
  if (count >= 4) {
    client.stream = fopen(arguments[2], "wb");
    client.pictures = fopen(arguments[3], "wb");
    if (!client.stream || !client.pictures) {
      perror("misuse");
      return 2;
    }
  }
  bool good = run(&client);
  teardown(&client);
  for (int again = 1; is("reopen") && !good && again < 10; again++) {
    printf("%s: %s returned %d\n", wanted, client.call, client.refused);
    client = (struct client){.hevc = hevc, .rate_control = VA_RC_CQP, .bit_rate = 1000000, .frame_rate = 30};
    good = run(&client);
    teardown(&client);
  }
  if (client.stream) fclose(client.stream);
  if (client.pictures) fclose(client.pictures);
  if (client.call) {
    printf("%s: %s returned %d\n", wanted, client.call, client.refused);
  } else {
    printf("%s: accepted\n", wanted);
  }
  return good ? 3 : 0;
}
