import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1, help="set by the launcher")  #: M308
parser.add_argument("--local-rank", dest="rank", type=int)  #: M308
args = parser.parse_args()
