package weir.functions;

import org.apache.flink.table.functions.ScalarFunction;

/**
 * Functions of floats. All but the square root may differ from Weir's in the last digit, since
 * libraries do.
 */
public final class Curves {
    private Curves() {}

    /** The square root. */
    public static class Sqrt extends ScalarFunction {
        public Double eval(Double x) {
            return x == null ? null : Functions.finite(Math.sqrt(x));
        }
    }

    /** {@code e} to the power of it. */
    public static class Exp extends ScalarFunction {
        public Double eval(Double x) {
            return x == null ? null : Functions.finite(Math.exp(x));
        }
    }

    /** The natural logarithm. */
    public static class Ln extends ScalarFunction {
        public Double eval(Double x) {
            return x == null ? null : Functions.finite(Math.log(x));
        }
    }

    /** The logarithm to base 2. */
    public static class Log2 extends ScalarFunction {
        public Double eval(Double x) {
            return x == null ? null : Functions.finite(weir.rows.Log2.of(x));
        }
    }

    /** The logarithm to base 10. */
    public static class Log10 extends ScalarFunction {
        public Double eval(Double x) {
            return x == null ? null : Functions.finite(Math.log10(x));
        }
    }

    /** The first to the power of the second. */
    public static class Pow extends ScalarFunction {
        public Double eval(Double x, Double y) {
            return x == null || y == null ? null : Functions.finite(Math.pow(x, y));
        }
    }
}
