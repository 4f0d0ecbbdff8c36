package weir.job;

/** Of the window of a node that starts here, the share of its frames that probes have seen. */
public final class WindowShare {
    public long start;
    public double share;

    /** For Flink, which fills it in. */
    public WindowShare() {}

    public WindowShare(long start, double share) {
        this.start = start;
        this.share = share;
    }
}
