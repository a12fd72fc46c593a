/* What a profile must fulfil beyond its schema. Each is called with the object that was read and
 * its node; 0, or -1 with the reader's error set. */
#ifndef GV_CONFIG_CHECK_H
#define GV_CONFIG_CHECK_H

#include "config/schema.h"

int gv_check_gpu(struct gv_reader *r, int node, void *object);
int gv_check_machine(struct gv_reader *r, int node, void *object);
int gv_check_path(struct gv_reader *r, int node, void *object);
int gv_check_variant(struct gv_reader *r, int node, void *object);
int gv_check_group(struct gv_reader *r, int node, void *object);
int gv_check_handoff(struct gv_reader *r, int node, void *object);
int gv_check_tuner(struct gv_reader *r, int node, void *object);
int gv_check_profile(struct gv_reader *r, int node, void *object);

#endif
