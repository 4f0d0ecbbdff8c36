package weir.alert;

/** What is known of a key that fires. */
final class Firing {
    /** The latest time that it was asserted. */
    long at;
    /** When the row came that was put out last. */
    long putAt;
    /** The time in the first row. */
    Long first;
    /** The latest time of its rows. */
    Long last;
    /** How many rows asserted it. */
    long rows;
    /** The smallest share of a window that was seen. */
    Double least;
    /** The row with the most extreme value. */
    Evidence peak;

    static Firing begun(Evidence seen, long came) {
        Firing firing = new Firing();
        firing.at = came;
        firing.putAt = came;
        firing.first = seen.ts();
        firing.last = seen.ts();
        firing.rows = 1;
        firing.least = seen.completeness();
        firing.peak = seen;
        return firing;
    }
}
