import pynvml  #: M903

pynvml.nvmlInit()  #: M903
