package weir.state;

import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import weir.wire.ByteReader;
import weir.wire.ByteWriter;
import weir.wire.Bytes;
import weir.wire.Unreadable;

/** Different values, each with how often it came; and of rounded ones the extremes as they came. */
public final class CountsState extends State {
    private final Column column;
    private final Map<Bytes, Long> counts;
    /** In the order of keys, without a sign; of no value they do not count. */
    private long least = -1;
    private long most = 0;

    CountsState(Column column) {
        this(column, new HashMap<>());
    }

    private CountsState(Column column, Map<Bytes, Long> counts) {
        this.column = column;
        this.counts = counts;
    }

    static CountsState take(Column column, ByteReader from, String what) throws Unreadable {
        CountsState state = new CountsState(column);
        if (column.kind == ROUNDED_COUNTS) {
            state.least = from.i64(what);
            state.most = from.i64(what);
        }
        Bytes before = null;
        long n = from.u32(what);
        for (long i = 0; i < n; i++) {
            long times = from.i64(what);
            if (times == 0) {
                throw new Unreadable("a value of " + what + " came no time");
            }
            before = ValuesState.next(column, from, before, what);
            state.counts.put(before, times);
        }
        return state;
    }

    /** How often each value came, as in a key. */
    public Map<Bytes, Long> counts() {
        return counts;
    }

    /** Whether values may be rounded, so that {@link #least} and {@link #most} hold. */
    public boolean isRounded() {
        return column.kind == ROUNDED_COUNTS;
    }

    public long least() {
        return least;
    }

    public long most() {
        return most;
    }

    public Column column() {
        return column;
    }

    @Override
    public void merge(State other) {
        CountsState theirs = (CountsState) other;
        theirs.counts.forEach((value, times) -> counts.merge(value, times, State::saturating));
        if (Long.compareUnsigned(theirs.least, least) < 0) {
            least = theirs.least;
        }
        if (Long.compareUnsigned(theirs.most, most) > 0) {
            most = theirs.most;
        }
    }

    @Override
    public CountsState copy() {
        CountsState copy = new CountsState(column, new HashMap<>(counts));
        copy.least = least;
        copy.most = most;
        return copy;
    }

    @Override
    public void write(ByteWriter out) {
        if (column.kind == ROUNDED_COUNTS) {
            out.i64(least);
            out.i64(most);
        }
        out.u32(counts.size());
        counts.entrySet().stream().sorted(Comparator.comparing(Map.Entry::getKey)).forEach(e -> {
            out.i64(e.getValue());
            out.bytes(e.getKey().all());
        });
    }
}
