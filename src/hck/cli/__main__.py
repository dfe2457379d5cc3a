from hck.cli import main

main()
