"""Load tests of this machine: LoadGen's scenarios on a system under test, the search for the peak, sweeps."""
