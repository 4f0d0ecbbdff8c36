//! The form of what is stored.

use weir_base::address::AddressForm;

/// How rows are stored.
#[derive(Clone, Copy, Default, Debug)]
pub struct StoreOptions {
    /// The form of addresses.
    pub addresses: AddressForm,
    /// A number for the captures that rows are of, unlike that of others: what is stored of other
    /// captures is added, be the rows equal.
    pub captures: u64,
    /// Whether rows come as they happen: files are then written every minute, else whenever they
    /// are large.
    pub is_live: bool,
}
