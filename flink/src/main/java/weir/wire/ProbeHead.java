package weir.wire;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;

/** The head of a probe stream: which probe it is, which life of it, and what it computes. */
public final class ProbeHead {
    /** The most bytes of JSON in a head. */
    public static final int BYTES_MAX = 65_536;

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final BigInteger OFFSET =
            new BigInteger("6c62272e07bb014262b821756295c58d", 16);
    private static final BigInteger PRIME =
            new BigInteger("0000000001000000000000000000013b", 16);
    private static final BigInteger MASK = BigInteger.ONE.shiftLeft(128).subtract(BigInteger.ONE);

    public final String probe;
    public final long epoch;
    public final String fingerprint;
    /** How its packets are read, as JSON: streams that differ here do not merge. */
    public final String rules;
    /** How long its windows wait for packets that come out of order. */
    public final long latenessNs;
    /** Whether this life does again what the one before it left undone. */
    public final boolean resumes;
    /** Whether it captures, on a machine whose clock is not synchronised. */
    public final boolean isUnsynchronised;

    private ProbeHead(JsonNode head) throws Unreadable {
        probe = text(head, "probe");
        int bytes = probe.getBytes(StandardCharsets.UTF_8).length;
        if (bytes == 0 || bytes > 255 || probe.chars().anyMatch(Character::isISOControl)) {
            throw new Unreadable("the head of the stream has `probe` of " + bytes
                    + " bytes: a name has 1 to 255 and no control characters");
        }
        JsonNode number = head.path("epoch");
        String digits = number.isTextual() || number.isIntegralNumber() ? number.asText() : "";
        try {
            epoch = Long.parseUnsignedLong(digits);
        } catch (NumberFormatException e) {
            throw new Unreadable("the head of the stream has no `epoch`");
        }
        fingerprint = text(head, "fingerprint");
        resumes = head.path("resumes").asBoolean();
        JsonNode clock = head.path("clock");
        isUnsynchronised = clock.isObject() && !clock.path("max_error_us").isNumber();
        JsonNode rules = head.path("rules");
        latenessNs = rules.path("lateness_ns").asLong();
        this.rules = "headers " + rules.path("headers").asText() + ", fragments "
                + rules.path("fragments").asText() + ", lateness "
                + rules.path("lateness_ns").asText() + " ns";
    }

    /** Whether bytes begin as the head of a stream does, of whatever version. */
    public static boolean isHead(byte[] bytes) {
        return bytes.length >= 3 && bytes[0] == 'W' && bytes[1] == 'P' && bytes[2] == 'S';
    }

    /** Reads a head: {@code WPS1}, its length, and so many bytes of JSON. */
    public static ProbeHead read(ByteReader from) throws Unreadable {
        String begins =
                new String(from.bytes(4, "the head of the stream"), StandardCharsets.ISO_8859_1);
        if (!begins.equals("WPS1")) {
            throw new Unreadable(begins.startsWith("WPS")
                    ? "the stream has version `" + Message.printable(begins)
                            + "` of the format, and this job reads `WPS1`"
                    : "this is no probe stream: it begins with `" + Message.printable(begins)
                            + "`, not `WPS1`");
        }
        long len = from.u32("the head of the stream");
        if (len > BYTES_MAX) {
            throw new Unreadable("the head of the stream can't have " + len + " bytes");
        }
        byte[] json = from.bytes(len, "the head of the stream");
        try {
            JsonNode head = JSON.readTree(json);
            if (head == null || !head.isObject()) {
                throw new Unreadable("the head of the stream is no JSON object");
            }
            return new ProbeHead(head);
        } catch (JsonProcessingException e) {
            throw new Unreadable("the head of the stream is no JSON: " + e.getOriginalMessage());
        } catch (java.io.IOException e) {
            throw new Unreadable("the head of the stream is no JSON");
        }
    }

    private static String text(JsonNode head, String member) throws Unreadable {
        JsonNode found = head.path(member);
        if (!found.isTextual()) {
            throw new Unreadable("the head of the stream has no `" + member + "`");
        }
        return found.asText();
    }

    /** The number that a probe of this name has in its messages: FNV-1a of 128 bits. */
    public static String numberOf(String probe) {
        BigInteger hash = OFFSET;
        for (byte b : probe.getBytes(StandardCharsets.UTF_8)) {
            hash = hash.xor(BigInteger.valueOf(b & 0xff)).multiply(PRIME).and(MASK);
        }
        String digits = hash.toString(16);
        return "0".repeat(32 - digits.length()) + digits;
    }
}
