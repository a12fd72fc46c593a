/* All kernels as one module. */
#include "kernels/memory.cu"
#include "kernels/peer.cu"
#include "kernels/ring.cu"
