/* `gv100 fleet --json`. */
#include <math.h>
#include <string.h>

#include "profiler/cli/fleet.h"

/* A value: a word where it is a state or a class, else a number. */
static json_t *value_json(const struct gv_fleet_key *key, double value)
{
    const char *name = gv_fleet_figures[key->figure].name;
    char text[48];
    if (isfinite(value) && (!strcmp(name, "p2p") || !strcmp(name, "nccl_class")))
        return json_string(gv_fleet_say(key, value, text, sizeof(text)));
    return isfinite(value) && gv_fleet_figures[key->figure].counted ? json_integer((long long)value)
                                                                    : gv_json_number(value);
}

static void add_key(const struct gv_fleet *fleet, const struct gv_fleet_key *key, json_t *o)
{
    char where[160];
    const struct gv_fleet_figure *f = &gv_fleet_figures[key->figure];
    json_object_set_new(o, "figure", json_string(f->name));
    json_object_set_new(o, "unit", json_string(f->unit));
    json_object_set_new(o, "where", json_string(gv_fleet_where(fleet, key, where, sizeof(where))));
    if (f->scope == GV_SCOPE_GPU)
        json_object_set_new(o, "gpu", json_integer(key->a));
    else if (f->scope == GV_SCOPE_PAIR) {
        json_object_set_new(o, "from", json_integer(key->a));
        json_object_set_new(o, "to", json_integer(key->b));
    } else {
        json_object_set_new(o, "gpus", gv_json_gpus(key->gpus));
        if (key->variant >= 0) {
            json_object_set_new(o, "op", json_string(gv_op_name(key->op)));
            json_object_set_new(o, "bytes", json_integer((long long)key->bytes));
            json_object_set_new(o, "loaded", json_boolean(key->loaded));
            json_object_set_new(
                o, "edit", json_string(gv_edit_name(fleet->variants[key->variant].edit)));
        }
    }
}

static json_t *item_json(const struct gv_fleet *fleet, const struct gv_fleet_item *item)
{
    json_t *o = json_object();
    bool counted = gv_fleet_figures[item->key.figure].counted;
    add_key(fleet, &item->key, o);
    json_object_set_new(o, "hosts", json_integer(item->n));
    json_object_set_new(o, counted ? "usual" : "median", value_json(&item->key, item->median));
    json_object_set_new(o, "min", value_json(&item->key, item->min));
    json_object_set_new(o, "max", value_json(&item->key, item->max));
    json_object_set_new(o, "min_host", json_string(fleet->hosts[item->min_host].name));
    json_object_set_new(o, "max_host", json_string(fleet->hosts[item->max_host].name));
    if (!counted) {
        json_object_set_new(
            o, "spread",
            gv_json_number(item->median > 0 ? (item->max - item->min) / item->median : NAN));
        json_object_set_new(o, "bound", gv_json_number(item->bound));
    }
    json_object_set_new(o, "off", json_integer(item->off));
    return o;
}

static json_t *lines_json(const struct gv_str *text)
{
    json_t *list = json_array();
    for (const char *p = text->data; p && *p;) {
        size_t n = strcspn(p, "\n");
        json_array_append_new(list, json_stringn(p, n));
        p += n + (p[n] == '\n');
    }
    return list;
}

static json_t *
kind_json(const struct gv_fleet *fleet, const struct gv_fleet_kind *kind, const char *written)
{
    const struct gv_profile *p = fleet->hosts[kind->hosts[0]].profile;
    json_t *o = json_object(), *hosts = json_array(), *items = json_array(), *models = json_array();
    for (int i = 0; i < kind->n; i++)
        json_array_append_new(hosts, json_string(fleet->hosts[kind->hosts[i]].name));
    for (int i = 0; i < p->ngpus; i++)
        json_array_append_new(models, json_string(p->gpus[i].model));
    for (int i = kind->first_item; i < kind->first_item + kind->nitems; i++)
        json_array_append_new(items, item_json(fleet, &fleet->items[i]));
    json_object_set_new(o, "name", json_string(kind->name));
    json_object_set_new(o, "hosts", hosts);
    json_object_set_new(o, "models", models);
    json_object_set_new(o, "driver", json_string(p->provenance.driver));
    json_object_set_new(o, "provenance", json_string(gv_provenance_name(p->provenance.kind)));
    json_object_set_new(o, "differs", *kind->differs ? json_string(kind->differs) : json_null());
    json_object_set_new(o, "outliers_can_be_told", json_boolean(kind->n >= GV_FLEET_FEWEST));
    json_object_set_new(o, "profile", written ? json_string(written) : json_null());
    json_object_set_new(o, "left_out", lines_json(&kind->left_out));
    json_object_set_new(o, "figures", items);
    return o;
}

static json_t *outlier_json(const struct gv_fleet *fleet, const struct gv_fleet_outlier *o)
{
    json_t *j = json_object();
    json_object_set_new(j, "host", json_string(fleet->hosts[o->host].name));
    if (o->item >= 0) {
        const struct gv_fleet_item *item = &fleet->items[o->item];
        double value = fleet->values[o->value].value;
        bool counted = gv_fleet_figures[item->key.figure].counted;
        add_key(fleet, &item->key, j);
        json_object_set_new(j, "value", value_json(&item->key, value));
        json_object_set_new(j, "elsewhere", value_json(&item->key, item->median));
        json_object_set_new(
            j, "deviation",
            gv_json_number(counted || !(item->median > 0) ? NAN : value / item->median - 1));
    } else {
        json_object_set_new(j, "figure", json_null());
        if (o->gpu >= 0)
            json_object_set_new(j, "gpu", json_integer(o->gpu));
    }
    json_object_set_new(j, "where", json_string(o->where));
    json_object_set_new(j, "text", json_string(o->text));
    json_object_set_new(j, "goes_with", o->cause >= 0 ? json_integer(o->cause) : json_null());
    return j;
}

json_t *gv_fleet_json(const struct gv_fleet *fleet, char *const *written)
{
    json_t *o = json_object(), *kinds = json_array(), *off = json_array(), *unread = json_array();
    for (int k = 0; k < fleet->nkinds; k++)
        json_array_append_new(kinds, kind_json(fleet, &fleet->kinds[k], written[k]));
    for (int i = 0; i < fleet->noutliers; i++)
        json_array_append_new(off, outlier_json(fleet, &fleet->outliers[i]));
    for (int i = 0; i < fleet->nunread; i++)
        json_array_append_new(
            unread, json_pack(
                        "{s:s, s:i, s:s}", "file", fleet->unread[i].file, "line",
                        (int)fleet->unread[i].line, "reason", fleet->unread[i].text));
    json_object_set_new(o, "hosts", json_integer(fleet->nhosts));
    json_object_set_new(o, "kinds", kinds);
    json_object_set_new(o, "outliers", off);
    json_object_set_new(o, "unread", unread);
    json_object_set_new(o, "passed_over", lines_json(&fleet->passed));
    return o;
}
