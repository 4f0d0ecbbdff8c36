package weir.wire;

/** Why bytes are no message, no head or no group of this job. Its message says where and what. */
public final class Unreadable extends Exception {
    private static final long serialVersionUID = 1L;

    public Unreadable(String why) {
        super(why);
    }
}
