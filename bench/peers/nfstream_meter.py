"""Meters the flows of a capture with NFStream, without looking into payloads."""

import sys

from nfstream import NFStreamer

if __name__ == "__main__":
    packets = flows = 0
    for flow in NFStreamer(source=sys.argv[1], n_dissections=0, statistical_analysis=False):
        flows += 1
        packets += flow.bidirectional_packets
    print(f"packets={packets} flows={flows}")
