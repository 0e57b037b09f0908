import os
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", "--local-rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)), help="set by the launcher")  #: M308
parser.add_argument("--local-rank", "--local_rank", dest="rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))  #: M308
args = parser.parse_args()
