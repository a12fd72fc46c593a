/* Between the slots of this library. */
#ifndef GV_SLOTS_H
#define GV_SLOTS_H

/* The name under which the net hook presents itself from now on. `name` must live as long as the
 * process; called once, before NCCL looks at the net slot. */
void gv_net_slot_name(const char *name);

extern const struct gv_env_v1 ncclEnvPlugin_v1;

#endif
