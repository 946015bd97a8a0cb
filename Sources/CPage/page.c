// The files of Sources/Serving/Page as bytes of the program. In Swift they would be literals of a hundred thousand numbers, for which the
// compiler takes a minute.
#include "page.h"

#include <string.h>

#pragma clang diagnostic ignored "-Wc23-extensions"  // #embed is of C23, and what it makes is plain C.

static const unsigned char alarm_js[] = {
#embed "../Serving/Page/alarm.js"
};
static const unsigned char alerts_js[] = {
#embed "../Serving/Page/alerts.js"
};
static const unsigned char app_js[] = {
#embed "../Serving/Page/app.js"
};
static const unsigned char elements_js[] = {
#embed "../Serving/Page/elements.js"
};
static const unsigned char events_js[] = {
#embed "../Serving/Page/events.js"
};
static const unsigned char icon_png[] = {
#embed "../Serving/Page/icon.png"
};
static const unsigned char icon_svg[] = {
#embed "../Serving/Page/icon.svg"
};
static const unsigned char index_html[] = {
#embed "../Serving/Page/index.html"
};
static const unsigned char liveness_js[] = {
#embed "../Serving/Page/liveness.js"
};
static const unsigned char login_js[] = {
#embed "../Serving/Page/login.js"
};
static const unsigned char manifest_webmanifest[] = {
#embed "../Serving/Page/manifest.webmanifest"
};
static const unsigned char mjpeg_js[] = {
#embed "../Serving/Page/mjpeg.js"
};
static const unsigned char page_css[] = {
#embed "../Serving/Page/page.css"
};
static const unsigned char phones_js[] = {
#embed "../Serving/Page/phones.js"
};
static const unsigned char player_js[] = {
#embed "../Serving/Page/player.js"
};
static const unsigned char push_js[] = {
#embed "../Serving/Page/push.js"
};
static const unsigned char reach_js[] = {
#embed "../Serving/Page/reach.js"
};
static const unsigned char strings_js[] = {
#embed "../Serving/Page/strings.js"
};
static const unsigned char viewers_js[] = {
#embed "../Serving/Page/viewers.js"
};
static const unsigned char whep_js[] = {
#embed "../Serving/Page/whep.js"
};
static const unsigned char worker_js[] = {
#embed "../Serving/Page/worker.js"
};

#define FILE_OF(name, bytes) {name, bytes, sizeof bytes}

static const struct page_file files[] = {
    FILE_OF("alarm.js", alarm_js),
    FILE_OF("alerts.js", alerts_js),
    FILE_OF("app.js", app_js),
    FILE_OF("elements.js", elements_js),
    FILE_OF("events.js", events_js),
    FILE_OF("icon.png", icon_png),
    FILE_OF("icon.svg", icon_svg),
    FILE_OF("index.html", index_html),
    FILE_OF("liveness.js", liveness_js),
    FILE_OF("login.js", login_js),
    FILE_OF("manifest.webmanifest", manifest_webmanifest),
    FILE_OF("mjpeg.js", mjpeg_js),
    FILE_OF("page.css", page_css),
    FILE_OF("phones.js", phones_js),
    FILE_OF("player.js", player_js),
    FILE_OF("push.js", push_js),
    FILE_OF("reach.js", reach_js),
    FILE_OF("strings.js", strings_js),
    FILE_OF("viewers.js", viewers_js),
    FILE_OF("whep.js", whep_js),
    FILE_OF("worker.js", worker_js),
};

struct page_file page_file_named(const char *name) {
  for (size_t index = 0; index < sizeof files / sizeof *files; index++) {
    if (strcmp(files[index].name, name) == 0) return files[index];
  }
  return (struct page_file){name, NULL, 0};
}
