import os

os.system("CUDA_VISIBLE_DEVICES=0 python train.py")  #: M704
