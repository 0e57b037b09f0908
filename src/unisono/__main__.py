"""`python -m unisono` is the `unisono` command; launchers such as torchrun start ranks this way."""

from unisono.cli.main import main

main()
