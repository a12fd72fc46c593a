/* The tuner's rows, behind those that the profile has already. */
#include "profiler/import/merge.h"

static int take_choice(
    struct gv_merge *m, const struct gv_import_source *s, const struct gv_import_choice *choice)
{
    for (int i = 0; i < m->p->ntuner; i++)
        if (gv_profile_tuner_hides(&m->p->tuner[i], &choice->row))
            return gv_merge_fail(
                m, s, choice->line,
                "the profile has a row already that holds for the same calls%s%s",
                *m->p->tuner[i].source ? ", from " : "", m->p->tuner[i].source);
    void *list = m->p->tuner;
    struct gv_profile_tuner *row = gv_merge_grow(&list, &m->p->ntuner, sizeof(*row));
    m->p->tuner = list;
    if (!row)
        return gv_import_no_memory(m->err);
    *row = choice->row;
    gv_merge_source(row->source, s, choice->line);
    return 0;
}

int gv_merge_choices(struct gv_merge *m)
{
    for (int k = 0; k < m->im->nsources; k++)
        for (int i = 0; i < m->im->sources[k].nchoices; i++)
            if (take_choice(m, &m->im->sources[k], &m->im->sources[k].choices[i]))
                return -1;
    return 0;
}
