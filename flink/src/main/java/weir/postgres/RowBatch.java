package weir.postgres;

import java.util.Map;
import java.util.UUID;

/**
 * The rows that one writer took between two checkpoints, by their tables, as {@code COPY} reads
 * them. Writer and number name it: whoever finds both in the database knows that it is there.
 */
record RowBatch(UUID writer, long number, Map<String, byte[]> rows) {}
