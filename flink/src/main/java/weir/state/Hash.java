package weir.state;

/**
 * The hash of what is more than a word, from which registers of sketches are filled. It is the same
 * in all versions of Weir, since sketches of several probes merge.
 */
final class Hash {
    private static final long SEED = 0x9e3779b97f4a7c15L;
    private static final long FACTOR = 0xd6e8feb86659fd93L;

    private Hash() {}

    static long of(long... words) {
        long hash = SEED;
        for (long word : words) {
            hash = fold(hash ^ word, FACTOR);
        }
        return hash;
    }

    static long ofText(byte[] text) {
        long[] words = new long[(text.length + 7) / 8 + 1];
        for (int i = 0; i < text.length; i++) {
            words[i / 8] |= (text[i] & 0xffL) << 8 * (i % 8);
        }
        words[words.length - 1] = text.length;
        return of(words);
    }

    static long ofAddress(byte[] address) {
        long high = word(address, 0);
        long low = word(address, 8);
        return high == 0 && low >>> 32 == 0xffff ? low & 0xffffffffL : of(high, low);
    }

    private static long word(byte[] bytes, int at) {
        long word = 0;
        for (int i = at; i < at + 8; i++) {
            word = word << 8 | bytes[i] & 0xff;
        }
        return word;
    }

    /** Both halves of a product without a sign, folded together. */
    private static long fold(long a, long b) {
        long high = Math.multiplyHigh(a, b) + (a >> 63 & b) + (b >> 63 & a);
        return a * b ^ high;
    }
}
