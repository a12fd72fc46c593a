/* The measuring tool's plan: any text is a plan within its bounds, or refused with a reason. */
#include "plugin/core/gv_force.h"
#include "tests/fuzz/fuzz.h"

enum { GPUS = 11 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gv_state state;
    struct gv_plan plan = {0};
    struct gv_error err = {0};
    const gv_gpuset gpus = 0x3ff; /* GPU 10 is on the machine, but not in the communicator */
    for (int i = 0; i < GV_MAX_GPUS; i++)
        state.to_profile[i] = i < GPUS ? i : -1;
    char *text = gv_fuzz_text(data, size);
    if (gv_force_plan(&state, text, gpus, &plan, &err)) {
        GV_MUST(err.text[0]);
    } else {
        GV_MUST(plan.nedits >= 0 && plan.nedits <= GV_MAX_EDITS);
        for (int i = 0; i < plan.nedits; i++) {
            const struct gv_edit *edit = &plan.edits[i];
            if (edit->kind == GV_EDIT_BRIDGE)
                GV_MUST(edit->gpus == gpus);
            else
                GV_MUST(gv_gpuset_has(gpus, edit->from) && gv_gpuset_has(gpus, edit->to));
        }
        for (int i = 0; i < plan.nrows; i++)
            GV_MUST(plan.rows[i].channels >= 0 && plan.rows[i].channels <= 64);
    }
    gv_plan_finish(&plan);
    free(text);
    return 0;
}
