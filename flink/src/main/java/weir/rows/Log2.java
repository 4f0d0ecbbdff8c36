package weir.rows;

/** Logarithms to base 2. */
public final class Log2 {
    private static final double LN2 = 0x1.62e42fefa39efp-1;
    private static final double LN2_LOW = 0x1.abc9e3b39803fp-56;

    private Log2() {}

    /**
     * The logarithm to base 2; of a finite number above 0, within half a unit of the last place and
     * a little: {@code Math.log(x) / Math.log(2)} is off by more, and rows are compared by digits.
     */
    public static double of(double x) {
        if (!(x > 0) || Double.isInfinite(x)) {
            return Math.log(x);
        }
        int exponent = Math.getExponent(x);
        if (exponent < Double.MIN_EXPONENT) {
            return Math.log(x) / LN2;
        }
        double m = x / Math.scalb(1.0, exponent);
        if (m > 1.4142135623730951) {
            m /= 2;
            exponent++;
        }
        if (m == 1.0) {
            return exponent;
        }
        // ln(m) = 2 artanh(f), f = (m - 1) / (m + 1), in two doubles.
        double up = m - 1;
        double down = m + 1;
        double downLow = 1 - (down - m);
        double f = up / down;
        double fLow = (Math.fma(-f, down, up) - f * downLow) / down;
        double s = f * f;
        double tail = 0;
        for (int k = 25; k >= 3; k -= 2) {
            tail = tail * s + 1.0 / k;
        }
        double head = 2 * f;
        double rest = 2 * fLow + 2 * f * s * tail;
        // Divided by ln 2, in two doubles.
        double sum = head + rest;
        double low = rest - (sum - head);
        double quotient = sum / LN2;
        double error = (Math.fma(-quotient, LN2, sum) + low - quotient * LN2_LOW) / LN2;
        double all = exponent + quotient;
        return all + (quotient - (all - exponent) + error);
    }
}
