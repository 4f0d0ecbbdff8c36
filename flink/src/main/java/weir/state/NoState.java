package weir.state;

import weir.wire.ByteWriter;

/** Of {@code completeness()}: the losses of probes travel in messages of their own. */
public final class NoState extends State {
    @Override
    public void merge(State other) {
        // There is nothing to merge.
    }

    @Override
    public State copy() {
        return new NoState();
    }

    @Override
    public void write(ByteWriter out) {
        // There is nothing to write.
    }
}
