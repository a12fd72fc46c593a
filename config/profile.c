/* The profile as a whole: from and to YAML, and questions about its pairs. */
#include "config/gv_profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/gv_str.h"
#include "base/gv_file.h"
#include "config/plain_locale.h"
#include "config/schema.h"

static uint64_t fnv1a(const char *text, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash;
}

struct gv_profile *gv_profile_new(void)
{
    struct gv_profile *profile = calloc(1, sizeof(*profile));
    if (profile)
        gv_object_init(&gv_object_profile, profile);
    return profile;
}

struct gv_profile *
gv_profile_parse(const char *text, unsigned long len, const char *name, struct gv_error *err)
{
    struct gv_yaml tree;
    if (len > GV_PROFILE_MAX) {
        gv_error_at(err, name, 0, 0, "the file is larger than %u bytes", GV_PROFILE_MAX);
        return NULL;
    }
    if (gv_yaml_parse(&tree, text, len, name, err))
        return NULL;
    struct gv_profile *profile = gv_profile_new();
    struct gv_reader reader = {.tree = &tree, .name = name, .err = err};
    struct gv_plain_locale locale = gv_plain_locale_enter();
    int rc = profile ? gv_read_object(&reader, 0, &gv_object_profile, profile)
                     : gv_error_at(err, name, 0, 0, "out of memory");
    gv_plain_locale_leave(locale);
    gv_yaml_finish(&tree);
    if (rc) {
        gv_profile_free(profile);
        return NULL;
    }
    profile->hash = fnv1a(text, len);
    return profile;
}

struct gv_profile *gv_profile_read(const char *path, struct gv_error *err)
{
    size_t len;
    char *text = gv_file_read(path, GV_FILE_ANY, GV_PROFILE_MAX, &len, err);
    if (!text)
        return NULL;
    struct gv_profile *profile = gv_profile_parse(text, len, path, err);
    free(text);
    return profile;
}

int gv_profile_format(const struct gv_profile *profile, struct gv_str *out)
{
    struct gv_plain_locale locale = gv_plain_locale_enter();
    gv_write_object(&gv_object_profile, profile, out);
    gv_plain_locale_leave(locale);
    return out->failed ? -1 : 0;
}

/* What cannot be read back equal is not written: the text is tried first. */
static int try_text(
    const struct gv_profile *profile, const struct gv_str *text, const char *path,
    struct gv_error *err)
{
    struct gv_error inner = {0};
    struct gv_profile *again = gv_profile_parse(text->data, text->len, path, &inner);
    if (!again)
        return gv_error_at(
            err, path, 0, 0, "not written: the profile is not valid: %s", inner.text);
    bool equal = gv_profile_equal(profile, again);
    gv_profile_free(again);
    return equal ? 0 : gv_error_at(err, path, 0, 0, "not written: it would not read back equal");
}

int gv_profile_write(const struct gv_profile *profile, const char *path, struct gv_error *err)
{
    struct gv_str text = {0};
    int rc = gv_profile_format(profile, &text);
    if (rc)
        gv_error_at(err, path, 0, 0, "out of memory");
    else
        rc = try_text(profile, &text, path, err);
    if (!rc)
        rc = gv_file_replace(path, text.data, text.len, 0644, err);
    gv_str_free(&text);
    return rc;
}

bool gv_profile_equal(const struct gv_profile *a, const struct gv_profile *b)
{
    return gv_object_equal(&gv_object_profile, a, b);
}

void gv_profile_free(struct gv_profile *profile)
{
    if (!profile)
        return;
    gv_object_finish(&gv_object_profile, profile);
    free(profile);
}

const struct gv_profile_path *gv_profile_path_of(const struct gv_profile *p, int from, int to)
{
    if (from == to)
        return NULL;
    for (int i = 0; i < p->npaths; i++) {
        const struct gv_profile_path *path = &p->paths[i];
        if (gv_gpuset_has(path->from, from) && gv_gpuset_has(path->to, to))
            return path;
        if (path->both_directions && gv_gpuset_has(path->from, to) && gv_gpuset_has(path->to, from))
            return path;
    }
    return NULL;
}

enum gv_p2p gv_profile_p2p(const struct gv_profile *p, int from, int to)
{
    const struct gv_profile_path *path = gv_profile_path_of(p, from, to);
    return path ? path->p2p : GV_P2P_UNVERIFIED;
}

gv_gpuset gv_profile_island(const struct gv_profile *p, int gpu)
{
    if (gpu < 0 || gpu >= p->ngpus)
        return 0;
    gv_gpuset set = GV_GPU_BIT(gpu);
    for (int i = 0; i < p->ngpus; i++)
        if (*p->gpus[gpu].island && !strcmp(p->gpus[i].island, p->gpus[gpu].island))
            set |= GV_GPU_BIT(i);
    return set;
}
