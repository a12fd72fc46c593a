/* XML by libxml2: the tree, with lines, nothing fetched and no entity followed. */
#ifndef GV_IMPORT_XML_H
#define GV_IMPORT_XML_H

#include <libxml/tree.h>

#include "profiler/import/import.h"

/* NULL with `err` (line and column) where the file is no whole XML or holds a document type with
 * entities of its own. To be freed with xmlFreeDoc. */
xmlDoc *gv_xml_read(const struct gv_text *t, struct gv_error *err);
/* The attribute's text in `out`; false where it is missing, empty or longer than fits. */
bool gv_xml_text(const xmlNode *node, const char *name, char *out, size_t size);
/* A whole number in decimal or, with 0x, in hex; `missing` where the attribute is not there.
 * LONG_MIN where it is no number. */
long gv_xml_int(const xmlNode *node, const char *name, long missing);
unsigned gv_xml_line(const xmlNode *node);
bool gv_xml_is(const xmlNode *node, const char *name);
/* The first element among `node` and its later siblings; NULL: none. */
const xmlNode *gv_xml_element(const xmlNode *node);

#define GV_XML_EACH(child, parent)                                                                 \
    for (const xmlNode *child = gv_xml_element((parent)->children); child;                         \
         child = gv_xml_element(child->next))

#endif
