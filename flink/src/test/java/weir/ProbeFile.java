package weir;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A stream of a probe in a file: its head as a record has it, and its messages. */
record ProbeFile(String probe, long epoch, byte[] head, List<byte[]> messages) {
    static ProbeFile read(String file) throws IOException {
        byte[] bytes = Files.readAllBytes(Path.of(file));
        ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        int end = 8 + in.getInt(4);
        JsonNode head = new ObjectMapper().readTree(bytes, 8, end - 8);
        List<byte[]> messages = new ArrayList<>();
        for (int at = end; at < bytes.length;) {
            int length = in.getInt(at);
            messages.add(Arrays.copyOfRange(bytes, at + 4, at + 4 + length));
            at += 4 + length;
        }
        BigInteger epoch = head.path("epoch").bigIntegerValue();
        return new ProbeFile(head.path("probe").asText(), epoch.longValue(),
                Arrays.copyOf(bytes, end), messages);
    }
}
