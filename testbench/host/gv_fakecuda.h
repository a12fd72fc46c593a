/* A libcuda.so.1 that knows one thing: which GPU the calling thread drives. GV_HOST_BUS_IDS names
 * the GPUs (comma list, PCI order), GV_HOST_UUIDS their UUIDs, CUDA_VISIBLE_DEVICES (numbers)
 * renumbers them as the real driver does. */
#ifndef GV_FAKECUDA_H
#define GV_FAKECUDA_H

#define GV_FAKECUDA_API __attribute__((visibility("default")))

/* The thread's current device by CUDA ordinal; a thread that never set one has no context. */
GV_FAKECUDA_API void gv_fakecuda_set_device(int ordinal);
GV_FAKECUDA_API int gv_fakecuda_device(void); /* 0 where none was set */
/* Number of the GPU in PCI order that an ordinal stands for; -1 for none. */
GV_FAKECUDA_API int gv_fakecuda_gpu(int ordinal);

#endif
