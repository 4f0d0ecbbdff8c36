package weir.state;

import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.TgtHllType;
import org.apache.datasketches.hll.Union;
import org.apache.datasketches.memory.Memory;
import weir.wire.ByteReader;
import weir.wire.ByteWriter;
import weir.wire.Bytes;
import weir.wire.Part;
import weir.wire.Unreadable;

/**
 * A sketch of Apache DataSketches (HLL, 4096 registers of 8 bits), kept as a live union; and of
 * {@code distinct} with a limit, the values that are counted exactly.
 */
public final class SketchState extends State {
    /** Registers of a sketch, as a power of two. */
    public static final int LG_REGISTERS = 12;
    /** Bytes before the registers of a sketch that has them all, and of the whole. */
    private static final int DENSE_HEAD = 40;
    private static final int DENSE_BYTES = DENSE_HEAD + (1 << LG_REGISTERS);

    private final Column column;
    /** {@code null}: no sketch has come. */
    private Union union;
    /** {@code null}: the column has only sketches. */
    private final ValuesState values;

    SketchState(Column column) {
        this(column, null, column.kind == VALUES_OR_SKETCH ? new ValuesState() : null);
    }

    private SketchState(Column column, Union union, ValuesState values) {
        this.column = column;
        this.union = union;
        this.values = values;
    }

    static SketchState take(Column column, ByteReader from, String what) throws Unreadable {
        byte[] bytes = from.bytes(from.u32(what), what);
        boolean counts = column.kind == VALUES_OR_SKETCH;
        HllSketch sketch = counts && bytes.length == 0 ? null : sketch(bytes, what);
        ValuesState values = counts ? ValuesState.take(column, from, what) : null;
        SketchState state = new SketchState(column, null, values);
        if (sketch != null) {
            try {
                // The library stumbles over some bytes only now.
                state.union().update(sketch);
                state.union().getResult(TgtHllType.HLL_8).getCompositeEstimate();
            } catch (RuntimeException | AssertionError e) {
                throw foreign(what);
            }
        }
        return state;
    }

    private static Unreadable foreign(String what) {
        return new Unreadable(
                "a sketch of " + what + " is none of HLL with 4096 registers of 8 bits");
    }

    private static HllSketch sketch(byte[] bytes, String what) throws Unreadable {
        // The library makes tables of the sizes that a sketch names before it looks for them.
        boolean isPlain = bytes.length >= 8
                && bytes[3] == LG_REGISTERS
                && (bytes[4] & 0xff) <= LG_REGISTERS
                && (bytes[7] >> 2 & 3) == TgtHllType.HLL_8.ordinal();
        if (!isPlain) {
            throw foreign(what);
        }
        try {
            HllSketch sketch = HllSketch.heapify(Memory.wrap(bytes));
            boolean ours = sketch.getLgConfigK() == LG_REGISTERS
                    && sketch.getTgtHllType() == TgtHllType.HLL_8;
            if (ours && (bytes.length < DENSE_BYTES || isSound(bytes))) {
                return sketch;
            }
        } catch (RuntimeException | AssertionError e) {
            // The library says so of bytes that are no sketch.
        }
        throw foreign(what);
    }

    /** Whether what stands before the registers is what they come to. */
    private static boolean isSound(byte[] bytes) throws Unreadable {
        if (bytes.length != DENSE_BYTES) {
            return false;
        }
        ByteReader head = new ByteReader(bytes);
        head.bytes(16, "a sketch");
        double low = Double.longBitsToDouble(head.i64("a sketch"));
        double high = Double.longBitsToDouble(head.i64("a sketch"));
        long zeros = head.i64("a sketch");
        double[] sums = new double[2];
        for (int i = DENSE_HEAD; i < bytes.length; i++) {
            int register = bytes[i] & 0xff;
            if (register > 63) {
                return false;
            }
            zeros -= register == 0 ? 1 : 0;
            sums[register >= 32 ? 1 : 0] += 1.0 / (1L << register);
        }
        return zeros == 0 && low == sums[0] && high == sums[1];
    }

    private Union union() {
        if (union == null) {
            union = new Union(LG_REGISTERS);
        }
        return union;
    }

    @Override
    public void merge(State other) {
        SketchState theirs = (SketchState) other;
        if (theirs.union != null) {
            union().update(theirs.union.getResult(TgtHllType.HLL_8));
        }
        if (values != null) {
            values.merge(theirs.values);
        }
    }

    /** About how many different values: the estimate, rounded. */
    public long estimate() {
        return union == null ? 0 : rounded(union.getResult(TgtHllType.HLL_8));
    }

    /** How many different values: exactly up to the limit, beyond it as {@link #estimate}. */
    public long upTo(long limit) {
        if (union == null && Long.compareUnsigned(values.size(), limit) <= 0) {
            return values.size();
        }
        Union all = copyUnion();
        for (Bytes value : values.values()) {
            all.update(item(value.all()));
        }
        return Math.max(rounded(all.getResult(TgtHllType.HLL_8)), limit + 1);
    }

    private Union copyUnion() {
        Union copy = new Union(LG_REGISTERS);
        if (union != null) {
            copy.update(union.getResult(TgtHllType.HLL_8));
        }
        return copy;
    }

    /** An estimate as a count. */
    public static long rounded(HllSketch sketch) {
        return (long) Math.floor(sketch.getCompositeEstimate() + 0.5);
    }

    /** What goes into a sketch for a value: numbers as they are, everything else as a hash. */
    private long item(byte[] value) {
        ByteReader from = new ByteReader(value);
        try {
            if (column.types.size() == 1) {
                return item(column.types.get(0), Part.read(column.types.get(0), from, "a value"));
            }
            long hash = 0;
            for (Part.Type type : column.types) {
                Object part = Part.read(type, from, "a value");
                hash = Hash.of(hash, part == null ? 0 : 1, item(type, part));
            }
            return hash;
        } catch (Unreadable e) {
            throw new IllegalStateException("it was read before", e);
        }
    }

    /** What goes into a sketch for a value of this type. */
    public static long item(Part.Type type, Object value) {
        if (value == null) {
            return 0;
        }
        switch (type) {
            case BOOL:
                return (Boolean) value ? 1 : 0;
            case FLOAT:
                return Double.doubleToRawLongBits((Double) value);
            case IP:
                return Hash.ofAddress((byte[]) value);
            case STRING:
            case BYTES:
                return Hash.ofText((byte[]) value);
            default:
                return (Long) value;
        }
    }

    @Override
    public SketchState copy() {
        ValuesState copied = values == null ? null : values.copy();
        return new SketchState(column, union == null ? null : copyUnion(), copied);
    }

    @Override
    public void write(ByteWriter out) {
        byte[] sketch = union == null && values != null
                ? new byte[0]
                : union().getResult(TgtHllType.HLL_8).toCompactByteArray();
        out.u32(sketch.length);
        out.bytes(sketch);
        if (values != null) {
            values.write(out);
        }
    }
}
