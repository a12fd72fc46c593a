#include "plugin/topology/tree.h"

static void format_elem(const struct gv_elem *elem, int indent, struct gv_str *out)
{
    gv_str_addf(out, "%*s<%s", indent, "", elem->name);
    for (int i = 0; i < elem->nattrs; i++)
        gv_str_addf(out, " %s=\"%s\"", elem->attr[i].key, elem->attr[i].value);
    if (!elem->nsubs) {
        gv_str_add(out, "/>\n");
        return;
    }
    gv_str_add(out, ">\n");
    for (int i = 0; i < elem->nsubs; i++)
        format_elem(elem->sub[i], indent + 2, out);
    gv_str_addf(out, "%*s</%s>\n", indent, "", elem->name);
}

int gv_tree_format(const struct gv_tree *tree, struct gv_str *out)
{
    format_elem(tree->root, 0, out);
    return out->failed ? -1 : 0;
}
