package weir.rows;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import weir.wire.Part;

/** Values as people read them: what {@code short(…)} of a query gives. */
public final class Short {
    private static final String[] UNITS = {"ns", "us", "ms", "s", "m", "h", "d"};
    private static final long[] NEXT = {1000, 1000, 1000, 60, 60, 24, Long.MAX_VALUE};
    private static final int DIGITS = 4;
    private static final BigInteger LIMIT = BigInteger.TEN.pow(DIGITS);

    private Short() {}

    /** A value that is there. */
    public static String of(Part.Type type, Object value) {
        switch (type) {
            case FLOAT:
                return number((Double) value);
            case DURATION:
                return duration((Long) value);
            default:
                return Text.of(type, value);
        }
    }

    private static String number(double x) {
        if (!Double.isFinite(x)) {
            return Text.shortest(x);
        }
        if (x == 0) {
            return "0";
        }
        BigDecimal rounded = new BigDecimal(Math.abs(x))
                .round(new MathContext(DIGITS, RoundingMode.HALF_EVEN));
        int exponent = rounded.precision() - rounded.scale() - 1;
        String sign = x < 0 ? "-" : "";
        if (exponent < -4 || exponent > 14) {
            return sign + plain(rounded.scaleByPowerOfTen(-exponent)) + "e" + exponent;
        }
        int power = exponent < 4 ? 0 : exponent < 6 ? 3 : exponent < 9 ? 6 : exponent < 12 ? 9 : 12;
        String factor = new String[] {"", "k", "M", "G", "T"}[power / 3];
        return sign + plain(rounded.scaleByPowerOfTen(-power)) + factor;
    }

    private static String plain(BigDecimal number) {
        return number.signum() == 0 ? "0" : number.stripTrailingZeros().toPlainString();
    }

    private static String duration(long ns) {
        if (ns == 0) {
            return "0s";
        }
        BigInteger length = BigInteger.valueOf(ns).abs();
        BigInteger size = BigInteger.ONE;
        for (int i = 0; ; i++) {
            int places = DIGITS - 1;
            while (places > 0 && rounded(length, size, places).compareTo(LIMIT) >= 0) {
                places--;
            }
            BigInteger number = rounded(length, size, places);
            BigInteger full = BigInteger.valueOf(NEXT[i]).multiply(BigInteger.TEN.pow(places));
            if (number.compareTo(full) < 0) {
                return (ns < 0 ? "-" : "") + plain(new BigDecimal(number, places)) + UNITS[i];
            }
            size = size.multiply(BigInteger.valueOf(NEXT[i]));
        }
    }

    /** A length by a size, in parts of ten to the power of {@code places}, rounded half up. */
    private static BigInteger rounded(BigInteger length, BigInteger size, int places) {
        BigInteger twice = BigInteger.TWO.multiply(length).multiply(BigInteger.TEN.pow(places));
        return twice.add(size).divide(BigInteger.TWO.multiply(size));
    }
}
