from superarm.cli import main

main()
