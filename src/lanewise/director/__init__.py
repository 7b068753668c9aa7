"""The director: gives devices of a pool to servers and takes them back, over a store and a driver."""
