package weir;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * {@code Asked}: the other programs of the tests, one after the other in one Java machine, which
 * takes longer to start than most of them. Each line of standard input is the name of one and its
 * arguments, with tabs between them. A line {@code --} follows what it prints, with what went wrong.
 */
public final class Asked {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split("\t");
            String fault = "";
            try {
                run(fields[0], Arrays.copyOfRange(fields, 1, fields.length));
            } catch (Exception e) {
                e.printStackTrace();
                fault = e.toString().replace('\n', ' ');
            }
            System.out.println("--" + fault);
            System.out.flush();
        }
    }

    private static void run(String program, String[] args) throws Exception {
        switch (program) {
            case "Consume" -> Consume.main(args);
            case "MakeTopic" -> MakeTopic.main(args);
            case "MergeFiles" -> MergeFiles.main(args);
            case "Produce" -> Produce.main(args);
            default -> throw new IllegalArgumentException("no program " + program);
        }
    }

    private Asked() {}
}
