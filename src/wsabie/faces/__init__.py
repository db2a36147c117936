"""What people touch: the command line now, a service later. Thin: no decision is made here."""
