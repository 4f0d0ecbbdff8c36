package weir.functions;

import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;
import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.TgtHllType;
import org.apache.datasketches.memory.Memory;
import org.apache.datasketches.memory.WritableMemory;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.FunctionHint;
import org.apache.flink.table.functions.AggregateFunction;
import weir.functions.DistinctUpTo.Values;
import weir.state.SketchState;
import weir.wire.Part;

/**
 * How many different values: exactly up to a limit, by a sketch beyond it. The third argument is
 * the type of the values in Weir.
 */
@FunctionHint(accumulator = @DataTypeHint(value = "RAW", bridgedTo = Values.class))
public final class DistinctUpTo extends AggregateFunction<Long, Values> {
    /** What came: either the values, or, when there are more than the limit, a sketch of them. */
    public static final class Values {
        private Set<Object> values = new HashSet<>();
        /** A sketch in the form that is updated in place; {@code null}: there is none. */
        private byte[] sketch;
        private long limit;

        private void take(Object value, Part.Type type) {
            if (sketch == null) {
                // Bytes are equal only to themselves.
                values.add(value instanceof byte[]
                        ? new String((byte[]) value, StandardCharsets.ISO_8859_1) : value);
                if (values.size() <= limit) {
                    return;
                }
                sketch = new byte[HllSketch.getMaxUpdatableSerializationBytes(
                        SketchState.LG_REGISTERS, TgtHllType.HLL_8)];
                HllSketch fresh = new HllSketch(SketchState.LG_REGISTERS, TgtHllType.HLL_8,
                        WritableMemory.writableWrap(sketch));
                values.forEach(held -> fresh.update(SketchState.item(type, bytes(held, type))));
                values.clear();
                return;
            }
            HllSketch.writableWrap(WritableMemory.writableWrap(sketch))
                    .update(SketchState.item(type, bytes(value, type)));
        }

        /** A value as sketches take it, whatever form it is kept in. */
        private static Object bytes(Object value, Part.Type type) {
            if (!(value instanceof String)) {
                return value;
            }
            boolean isText = type == Part.Type.STRING;
            return ((String) value).getBytes(
                    isText ? StandardCharsets.UTF_8 : StandardCharsets.ISO_8859_1);
        }

        private long count() {
            if (sketch == null) {
                return values.size();
            }
            HllSketch read = HllSketch.wrap(Memory.wrap(sketch));
            return Math.max(SketchState.rounded(read), limit + 1);
        }
    }

    @Override
    public Values createAccumulator() {
        return new Values();
    }

    public void accumulate(Values all, Long x, Long limit, String type) {
        take(all, x, limit, type);
    }

    public void accumulate(Values all, Boolean x, Long limit, String type) {
        take(all, x, limit, type);
    }

    public void accumulate(Values all, String x, Long limit, String type) {
        take(all, x, limit, type);
    }

    public void accumulate(
            Values all, @DataTypeHint("BYTES") byte[] x, Long limit, String type) {
        take(all, x, limit, type);
    }

    private static void take(Values all, Object x, Long limit, String type) {
        all.limit = limit;
        if (x != null) {
            all.take(x, Part.Type.of(type));
        }
    }

    @Override
    public Long getValue(Values all) {
        return all.count();
    }
}
