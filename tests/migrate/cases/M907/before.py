import bitsandbytes as bnb  #: M907
from numba import cuda  #: M907

optimizer = bnb.optim.Adam8bit([])  #: M907


@cuda.jit  #: M907
def add(x):
    x[0] += 1
