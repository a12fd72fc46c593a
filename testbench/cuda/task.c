/* Twins as coroutines: one that waits for a word gives the others a turn. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "testbench/cuda/gv_virtual.h"

#define STACK_BYTES (256 << 10)

static void *take_stack(struct gv_world *w)
{
    if (w->nfree_stacks)
        return w->free_stacks[--w->nfree_stacks];
    void *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return stack == MAP_FAILED ? NULL : stack;
}

static void give_stack(struct gv_world *w, void *stack)
{
    if (w->nfree_stacks < 64)
        w->free_stacks[w->nfree_stacks++] = stack;
    else
        munmap(stack, STACK_BYTES);
}

static void load(struct gv_twin_env *env, gv_u64 at, void *to, size_t bytes)
{
    struct gv_world *w = env->world;
    gv_virtual_load(w, w->running->stream->gpu, at, to, bytes);
}

static void store(struct gv_twin_env *env, gv_u64 at, const void *from, size_t bytes)
{
    struct gv_world *w = env->world;
    gv_virtual_store(w, w->running->stream->gpu, at, from, bytes);
}

static bool reached(const struct gv_vop *op)
{
    return __atomic_load_n((const uint32_t *)(uintptr_t)op->wait_at, __ATOMIC_SEQ_CST) >=
           op->wait_value;
}

static bool wait(struct gv_twin_env *env, gv_u64 at, gv_u32 value, gv_u64 timeout_ns)
{
    struct gv_world *w = env->world;
    struct gv_vop *op = w->running;
    gv_u32 now;
    load(env, at, &now, sizeof(now));
    if (w->gpu[op->stream->gpu].sticky)
        return false;
    op->wait_at = at;
    op->wait_value = value;
    op->timeout_ns = timeout_ns;
    op->timed_out = false;
    while (!reached(op) && !op->timed_out) {
        op->waiting = true;
        swapcontext(&op->context, &w->scheduler);
        op = w->running;
    }
    op->waiting = false;
    return !op->timed_out;
}

/* Entry of a coroutine. What it needs stands in the world, since makecontext passes ints. */
static void enter(void)
{
    struct gv_world *w = gv_world();
    struct gv_vop *op = w->running;
    op->twin->run(&op->env, op->args);
    op->ran = true;
    swapcontext(&op->context, &w->scheduler);
}

static void begin(struct gv_world *w, struct gv_vop *op)
{
    op->env.world = w;
    op->env.load = load;
    op->env.store = store;
    op->env.wait = wait;
    op->env.cap16 = w->cap_bytes / 16;
    op->stack = take_stack(w);
    if (!op->stack)
        abort();
    getcontext(&op->context);
    op->context.uc_stack.ss_sp = op->stack;
    op->context.uc_stack.ss_size = STACK_BYTES;
    op->context.uc_link = NULL;
    makecontext(&op->context, enter, 0);
}

bool gv_task_run(struct gv_world *w, struct gv_vop *op)
{
    if (op->ran || (op->waiting && !op->timed_out && !reached(op)))
        return false;
    if (!op->stack)
        begin(w, op);
    w->running = op;
    swapcontext(&w->scheduler, &op->context);
    w->running = NULL;
    if (op->ran)
        gv_task_finish(w, op);
    return true;
}

void gv_task_finish(struct gv_world *w, struct gv_vop *op)
{
    if (op->stack)
        give_stack(w, op->stack);
    op->stack = NULL;
}
