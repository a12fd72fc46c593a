/* NCCL's releases as numbers. */
#ifndef GV_RELEASE_H
#define GV_RELEASE_H

/* Reads "2.28.9" as NCCL numbers it (22809). Returns 0 where the text is no release. */
int gv_nccl_parse(const char *text);
/* The reverse; `out` holds 16 bytes. Returns `out`. */
const char *gv_nccl_format(int version, char out[16]);

#endif
