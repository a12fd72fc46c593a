/* The topology file as NCCL's own parser reads it, faults included. */
#ifndef GV_NT_XML_H
#define GV_NT_XML_H

#include <stddef.h>

#define GV_NT_TEXT 256
/* As many are read; NCCL has room for one more that it adds itself. */
#define GV_NT_MAX_ATTRS 16
#define GV_NT_ROOM_ATTRS 24

struct gv_nt_attr {
    char *key, *value;
};

/* One element. Children are kept in file order. */
struct gv_nt_elem {
    char *name;
    struct gv_nt_attr attr[GV_NT_ROOM_ATTRS];
    int nattrs;
    struct gv_nt_elem *parent, **child;
    int nchild, child_cap;
    int first; /* lowest rank that keeps this branch, -1 = nobody (see prepare.h) */
};

/* Where parsing failed; text is ready to show. */
struct gv_nt_error {
    char text[256];
};

/* Reads `len` bytes. Element names that NCCL does not know are dropped with all they hold, as
 * there. Returns 0 with the `system` element in *out (NULL for a file without elements; the caller
 * frees it), 3 for what NCCL calls an internal error, 5 for a wrong version. */
int gv_nt_xml_parse(
    const char *text, size_t len, int release, struct gv_nt_elem **out, struct gv_nt_error *err);

/* Frees the element and all below it; NULL is allowed. */
void gv_nt_xml_free(struct gv_nt_elem *elem);

/* The value, or NULL. Owned by the element. */
const char *gv_nt_xml_get(const struct gv_nt_elem *elem, const char *key);

/* Sets or replaces an attribute. Without room it is dropped. */
void gv_nt_xml_set(struct gv_nt_elem *elem, const char *key, const char *value);

/* Integer value (any C base), or `otherwise` where the attribute is absent. */
int gv_nt_xml_int(const struct gv_nt_elem *elem, const char *key, int otherwise);

/* First child of that name, or NULL. */
struct gv_nt_elem *gv_nt_xml_child(const struct gv_nt_elem *elem, const char *name);

/* Puts `child` (with its parent set) at position `at` of the children. */
void gv_nt_xml_insert(struct gv_nt_elem *parent, struct gv_nt_elem *child, int at);

/* A new element with the same name and attributes and no children. */
struct gv_nt_elem *gv_nt_xml_clone(const struct gv_nt_elem *elem);

/* First element of that name whose attribute has exactly that value, in file order; NULL if none.
 * `value` NULL matches any element of the name. */
struct gv_nt_elem *
gv_nt_xml_find(struct gv_nt_elem *root, const char *name, const char *key, const char *value);

#endif
