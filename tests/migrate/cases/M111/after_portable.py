import argparse

DEVICES = ["cpu", "npu", "cuda"]  #: M111
parser = argparse.ArgumentParser()
parser.add_argument("--device", choices=["npu", "cuda", "cpu"], default="cpu")  #: M111
parser.add_argument("--on", choices=("cpu", "cuda", "npu"), default="cpu")
