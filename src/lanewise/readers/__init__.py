"""Results of other tools read as observations: nvbandwidth, p2pBandwidthLatencyTest, fio, perftest, gdsio."""
