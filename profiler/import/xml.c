#include "profiler/import/xml.h"

#include <limits.h>
#include <string.h>

#include <libxml/parser.h>
#include <libxml/xmlerror.h>

/* Depth of recursion in the readers is bounded by libxml2's own limit of 256 (no XML_PARSE_HUGE).
 */
static const int options = XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
                           XML_PARSE_BIG_LINES | XML_PARSE_NOCDATA;

xmlDoc *gv_xml_read(const struct gv_text *t, struct gv_error *err)
{
    xmlResetLastError();
    xmlDoc *doc = xmlReadMemory(t->raw, (int)t->len, t->path, NULL, options);
    if (!doc) {
        const xmlError *e = xmlGetLastError();
        char why[160] = "it is no XML";
        if (e && e->message)
            snprintf(why, sizeof(why), "%.*s", (int)strcspn(e->message, "\n"), e->message);
        gv_error_at(
            err, t->path, e && e->line > 0 ? (unsigned)e->line : 0,
            e && e->int2 > 0 ? (unsigned)e->int2 : 0, "%s: the file is damaged or cut", why);
        return NULL;
    }
    if (doc->intSubset && doc->intSubset->entities) {
        gv_error_at(err, t->path, 1, 0, "it declares entities of its own: not read");
        xmlFreeDoc(doc);
        return NULL;
    }
    return doc;
}

bool gv_xml_text(const xmlNode *node, const char *name, char *out, size_t size)
{
    xmlChar *value = xmlGetProp(node, (const xmlChar *)name);
    size_t n = value ? strlen((const char *)value) : 0;
    bool there = n > 0 && n < size;
    *out = 0;
    if (there)
        memcpy(out, value, n + 1);
    xmlFree(value);
    return there;
}

long gv_xml_int(const xmlNode *node, const char *name, long missing)
{
    char text[24], *end;
    if (!xmlHasProp(node, (const xmlChar *)name))
        return missing;
    if (!gv_xml_text(node, name, text, sizeof(text)))
        return LONG_MIN;
    long value = strtol(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
    return *end ? LONG_MIN : value;
}

unsigned gv_xml_line(const xmlNode *node)
{
    long line = xmlGetLineNo(node);
    return line > 0 ? (unsigned)line : 0;
}

bool gv_xml_is(const xmlNode *node, const char *name)
{
    return node && node->type == XML_ELEMENT_NODE && !strcmp((const char *)node->name, name);
}

const xmlNode *gv_xml_element(const xmlNode *node)
{
    while (node && node->type != XML_ELEMENT_NODE)
        node = node->next;
    return node;
}
