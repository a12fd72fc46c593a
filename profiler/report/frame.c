/* What every page begins with. */
#include "profiler/report/view.h"

static void meta(struct gv_html *h, const char *name, const char *content)
{
    gv_open(h, "meta");
    gv_attr(h, "name", name);
    gv_attr(h, "content", content);
    gv_close(h);
}

static void head(struct gv_html *h, const char *title, const char *style)
{
    gv_open(h, "head");
    gv_open(h, "meta");
    gv_attr(h, "charset", "utf-8");
    gv_close(h);
    gv_element(h, "title", title);
    meta(h, "viewport", "width=device-width, initial-scale=1");
    meta(h, "color-scheme", "light dark");
    gv_open(h, "style");
    gv_raw(h, gv_report_style);
    gv_raw(h, style);
    gv_close_n(h, 2);
}

void gv_page_open(struct gv_html *h, const char *title, const char *style)
{
    gv_str_add(h->out, "<!DOCTYPE html>\n");
    gv_open(h, "html");
    gv_attr(h, "lang", "en");
    head(h, title, style);
    gv_open(h, "body");
    gv_open_class(h, "a", "skip");
    gv_attr(h, "href", "#content");
    gv_text(h, "To the content");
    gv_close(h);
    gv_open(h, "header");
    gv_element(h, "h1", title);
}
