//! Policies of a full buffer.

/// The policy for rows, alerts or frames while there is no room for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// They wait, and so does what makes them: nothing is lost of a file.
    Wait,
    /// They are left out, and counted: a wire does not wait.
    LeaveOut,
}
