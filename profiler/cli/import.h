/* What `gv100 import` prints. */
#ifndef GV_CLI_IMPORT_H
#define GV_CLI_IMPORT_H

#include <jansson.h>

#include "profiler/import/gv_import.h"

/* `written`: the profile's path, NULL where nothing was to be written. */
json_t *gv_import_json(const struct gv_import *im, const struct gv_profile *p, const char *written);
json_t *gv_import_refused_json(const struct gv_error *err);

#endif
