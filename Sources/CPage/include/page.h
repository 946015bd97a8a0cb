#pragma once

#include <stddef.h>

/// One file of the page for browsers.
struct page_file {
  const char *name;
  const unsigned char *bytes;
  size_t count;
};

/// Returns the file of that name; no bytes if there is none.
struct page_file page_file_named(const char *name);
