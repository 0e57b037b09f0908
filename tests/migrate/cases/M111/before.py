import argparse

DEVICES = ["cpu", "cuda"]  #: M111
parser = argparse.ArgumentParser()
parser.add_argument("--device", choices=["cuda", "cpu"], default="cpu")  #: M111
parser.add_argument("--on", choices=("cpu", "cuda", "npu"), default="cpu")
