from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    ext_modules=[CUDAExtension("fast", ["fast.cpp", "fast.cu"])],  #: M904
    cmdclass={"build_ext": BuildExtension},  #: M904
)
