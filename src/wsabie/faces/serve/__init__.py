"""The service: what the command line can do, over HTTP, with a web application in front of it."""
