/* Numbers are read and written with a decimal point, whatever the host program chose. */
#ifndef GV_CONFIG_PLAIN_LOCALE_H
#define GV_CONFIG_PLAIN_LOCALE_H

#include <locale.h>

struct gv_plain_locale {
    locale_t plain, before;
};

/* Sets the "C" locale for this thread alone. Give the result to gv_plain_locale_leave. */
static inline struct gv_plain_locale gv_plain_locale_enter(void)
{
    struct gv_plain_locale l = {newlocale(LC_ALL_MASK, "C", (locale_t)0), (locale_t)0};
    if (l.plain)
        l.before = uselocale(l.plain);
    return l;
}

static inline void gv_plain_locale_leave(struct gv_plain_locale l)
{
    if (!l.plain)
        return;
    uselocale(l.before);
    freelocale(l.plain);
}

#endif
