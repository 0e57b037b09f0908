import os
import subprocess

os.system("nvidia-smi")  #: M909
subprocess.check_output(["nvidia-smi", "-L"])  #: M909
print("look at nvidia-smi")
