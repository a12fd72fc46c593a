/* Profiles of many hosts in one text, as launchers mix them: what is taken is compared, merged and shown;
 * every host is of one kind, and a merged profile is one that the reader takes. */
#include "base/gv_str.h"
#include "profiler/fleet/fleet.h"
#include "tests/fuzz/fuzz.h"

static void check_kinds(const struct gv_fleet *fleet)
{
    int hosts = 0;
    for (int k = 0; k < fleet->nkinds; k++) {
        const struct gv_fleet_kind *kind = &fleet->kinds[k];
        GV_MUST(kind->n > 0 && kind->name[0] && kind->merged);
        GV_MUST(k == 0 || kind->n <= fleet->kinds[k - 1].n);
        GV_MUST(kind->merged->ngpus == fleet->hosts[kind->hosts[0]].profile->ngpus);
        hosts += kind->n;
    }
    GV_MUST(hosts == fleet->nhosts);
}

static void check_outliers(const struct gv_fleet *fleet)
{
    for (int i = 0; i < fleet->noutliers; i++) {
        const struct gv_fleet_outlier *o = &fleet->outliers[i];
        GV_MUST(o->host >= 0 && o->host < fleet->nhosts && o->where[0] && o->text[0]);
        GV_MUST(o->cause < fleet->noutliers && o->cause != i && o->item < fleet->nitems);
        GV_MUST(o->cause < 0 || fleet->outliers[o->cause].host == o->host);
        if (o->item >= 0)
            GV_MUST(fleet->kinds[fleet->hosts[o->host].kind].n >= GV_FLEET_FEWEST);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gv_fleet fleet = {0};
    struct gv_str page = {0};
    struct gv_error err = {0};
    char *text = calloc(1, size + 1);
    GV_MUST(text);
    memcpy(text, data, size);
    int rc = gv_fleet_take_stream(&fleet, text, size, "stdin", &err);
    if (!rc)
        rc = gv_fleet_settle(&fleet, &err);
    GV_MUST(!rc || err.text[0]);
    if (!rc) {
        check_kinds(&fleet);
        check_outliers(&fleet);
        GV_MUST(!gv_fleet_html(&fleet, &page));
    }
    gv_str_free(&page);
    gv_fleet_free(&fleet);
    free(text);
    return 0;
}
