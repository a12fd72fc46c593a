/* Goes through orders of steps: every choice of who is next, of who dies and of whose wait is over,
 * within bounds. */
#ifndef GV_ORDERS_H
#define GV_ORDERS_H

#include <stdbool.h>

#define GV_ORDERS_PLAYERS 6

struct gv_orders_bounds {
    int preemptions; /* times that a player is set aside though it could go on; -1: any number */
    int deaths, timeouts;
    long most; /* runs; 0: all */
};

struct gv_orders {
    int nplayers;
    void (*play)(int player); /* one player's life, from its start to its end */
    bool (*mortal)(int player);
    void (*begin)(void); /* before each run */
    bool (*end)(void);   /* after each run: whether all is as it must be */
};

/* For players: waits until `ready(arg)`, which looks at the test's own variables. */
void gv_orders_wait(bool (*ready)(void *), void *arg);
/* Of this run: whether a player died, how many did; waits that ran out, and those of them that did
 * for want of anybody who could go on. */
bool gv_orders_died(int player);
int gv_orders_deaths(void);
int gv_orders_timeouts(void);
int gv_orders_stalls(void);

/* From `begin`: so many times there is no room for a new entry. */
void gv_orders_no_room(int times);

/* The number of runs, or -1: one was not as it must be, and its choices were printed. */
long gv_orders_explore(const struct gv_orders *orders, struct gv_orders_bounds bounds);

#endif
