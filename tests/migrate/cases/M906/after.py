import triton  #: M906
import triton.language as tl  #: M906


@triton.jit  #: M906
def kernel(x):
    tl.load(x)  #: M906
