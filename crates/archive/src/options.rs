//! The form of what is stored.

use weir_base::address::AddressForm;

/// How rows are stored.
#[derive(Clone, Copy, Default, Debug)]
pub struct StoreOptions {
    /// The form of addresses.
    pub addresses: AddressForm,
    /// Whether rows come as they happen: files are then written every minute, else whenever they
    /// are large.
    pub is_live: bool,
}
