package weir.functions;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Base64;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.functions.ScalarFunction;

/**
 * Community ID, version 1, of a connection: the name that other tools give it, too
 * (https://github.com/corelight/community-id-spec). Absent where a part that belongs to it is.
 */
public final class CommunityId extends ScalarFunction {
    private static final int ICMP = 1;
    private static final int ICMP6 = 58;
    /** Types of ICMP and ICMPv6 whose answers have a type of their own. */
    private static final int[][] ICMP_PAIRS = {{8, 0}, {13, 14}, {15, 16}, {10, 9}, {17, 18}};
    private static final int[][] ICMP6_PAIRS =
            {{128, 129}, {133, 134}, {135, 136}, {130, 131}, {139, 140}, {144, 145}};

    /** Without ICMP. */
    public String eval(Long seed, @DataTypeHint("BYTES") byte[] source, Long sport,
            @DataTypeHint("BYTES") byte[] destination, Long dport, Long proto) {
        return eval(seed, source, sport, destination, dport, proto, null, null);
    }

    /** With the type and the code of ICMP, where they are known. */
    public String eval(Long seed, @DataTypeHint("BYTES") byte[] source, Long sport,
            @DataTypeHint("BYTES") byte[] destination, Long dport, Long proto, Long type,
            Long code) {
        if (source == null || destination == null || outside(proto, 0xff)) {
            return null;
        }
        boolean hasPorts = true;
        boolean oneWay = false;
        long from = 0;
        long to = 0;
        switch (proto.intValue()) {
            case 6, 17, 132 -> {
                if (outside(sport, 0xffff) || outside(dport, 0xffff)) {
                    return null;
                }
                from = sport;
                to = dport;
            }
            case ICMP, ICMP6 -> {
                if (outside(type, 0xff) || outside(code, 0xff)) {
                    return null;
                }
                Integer answer = answer(proto == ICMP ? ICMP_PAIRS : ICMP6_PAIRS, type);
                from = type;
                to = answer == null ? code : answer;
                oneWay = answer == null;
            }
            default -> hasPorts = false;
        }
        int order = Arrays.compareUnsigned(source, destination);
        boolean swaps = !oneWay && (order > 0 || order == 0 && from > to);
        MessageDigest hash = sha1();
        hash.update(word(seed));
        hash.update(octets(swaps ? destination : source));
        hash.update(octets(swaps ? source : destination));
        hash.update(new byte[] {proto.byteValue(), 0});
        if (hasPorts) {
            hash.update(word(swaps ? to : from));
            hash.update(word(swaps ? from : to));
        }
        return "1:" + Base64.getEncoder().encodeToString(hash.digest());
    }

    private static boolean outside(Long value, long most) {
        return value == null || value < 0 || value > most;
    }

    private static Integer answer(int[][] pairs, long type) {
        for (int[] pair : pairs) {
            if (type == pair[0] || type == pair[1]) {
                return type == pair[0] ? pair[1] : pair[0];
            }
        }
        return null;
    }

    private static byte[] word(long value) {
        return new byte[] {(byte) (value >> 8), (byte) value};
    }

    /** Four bytes of an address of IPv4, which is mapped, else all. */
    private static byte[] octets(byte[] address) {
        boolean v4 = address[10] == -1 && address[11] == -1;
        for (int i = 0; i < 10; i++) {
            v4 &= address[i] == 0;
        }
        return v4 ? Arrays.copyOfRange(address, 12, 16) : address;
    }

    private static MessageDigest sha1() {
        try {
            return MessageDigest.getInstance("SHA-1");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("each Java has SHA-1", e);
        }
    }
}
