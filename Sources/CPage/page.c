// The files of Sources/Serving/Page as bytes of the program. In Swift they would be literals of a hundred thousand numbers, for which the
// compiler takes a minute.
#include "page.h"

#include <string.h>

#pragma clang diagnostic ignored "-Wc23-extensions"  // #embed is of C23, and what it makes is plain C.

// Each file of the page stands here once.
static const struct page_file files[] = {
#define FILE_NAME alarm.js
#include "entry.h"
#define FILE_NAME alerts.js
#include "entry.h"
#define FILE_NAME app.js
#include "entry.h"
#define FILE_NAME elements.js
#include "entry.h"
#define FILE_NAME events.js
#include "entry.h"
#define FILE_NAME icon.png
#include "entry.h"
#define FILE_NAME icon.svg
#include "entry.h"
#define FILE_NAME index.html
#include "entry.h"
#define FILE_NAME liveness.js
#include "entry.h"
#define FILE_NAME login.js
#include "entry.h"
#define FILE_NAME manifest.webmanifest
#include "entry.h"
#define FILE_NAME mjpeg.js
#include "entry.h"
#define FILE_NAME page.css
#include "entry.h"
#define FILE_NAME phones.js
#include "entry.h"
#define FILE_NAME player.js
#include "entry.h"
#define FILE_NAME push.js
#include "entry.h"
#define FILE_NAME reach.js
#include "entry.h"
#define FILE_NAME strings.js
#include "entry.h"
#define FILE_NAME viewers.js
#include "entry.h"
#define FILE_NAME whep.js
#include "entry.h"
#define FILE_NAME worker.js
#include "entry.h"
};

struct page_file page_file_named(const char *name) {
  for (size_t index = 0; index < sizeof files / sizeof *files; index++) {
    if (strcmp(files[index].name, name) == 0) return files[index];
  }
  return (struct page_file){name, NULL, 0};
}
