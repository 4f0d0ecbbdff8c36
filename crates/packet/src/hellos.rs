//! Hellos of the packets of a batch that are not readable where they stand: those of QUIC, which
//! are encrypted, and those of TLS over several records. Several fields are read of each, so they
//! are kept as long as the batch is at hand.

use crate::bits::Bits;
use crate::limits::BATCH;
use crate::quic::initial::Decrypting;
use crate::tls::records::{Start, client_hello};
use crate::tls::{Hello, Tls, after_change_cipher_spec};
use std::cell::RefCell;

/// Hellos of a batch, by row.
#[derive(Default, Debug)]
pub(crate) struct Hellos(RefCell<Decoded>);

/// A copy is of another batch.
impl Clone for Hellos {
    fn clone(&self) -> Hellos {
        Hellos::default()
    }
}

#[derive(Default, Debug)]
struct Decoded {
    /// The rows that were looked at.
    known: Bits,
    /// Of these, where the hello stands; empty where there is none.
    places: Vec<(usize, usize)>,
    bytes: Vec<u8>,
    decrypting: Decrypting,
    message: Vec<u8>,
}

impl Hellos {
    /// Another batch is at hand.
    pub(crate) fn next_batch(&mut self) {
        let decoded = self.0.get_mut();
        decoded.known = Bits::NONE;
        decoded.bytes.clear();
    }

    /// The result of `read` for the hello in a client's Initial packets of a UDP payload.
    pub(crate) fn of_quic<T>(
        &self,
        row: usize,
        payload: &[u8],
        read: impl FnOnce(&Hello<'_>) -> Option<T>,
    ) -> Option<T> {
        self.read(row, read, |decoded| {
            let found = decoded.decrypting.of_client(payload);
            decoded.bytes.extend_from_slice(found);
        })
    }

    /// The result of `read` for the hello in the TLS records that start a TCP payload, or that
    /// stand after a ChangeCipherSpec record there.
    pub(crate) fn of_tls<T>(
        &self,
        row: usize,
        payload: &[u8],
        read: impl FnOnce(&Hello<'_>) -> Option<T>,
    ) -> Option<T> {
        let payload = after_change_cipher_spec(payload);
        let tls = Tls::new(payload)?;
        if !tls.client_hello_goes_on(payload) {
            return read(&tls.hello()?);
        }
        self.read(row, read, |decoded| {
            let found = client_hello(payload, &mut decoded.message);
            if matches!(found, Start::Partial | Start::Whole(_)) {
                decoded.bytes.extend_from_slice(&decoded.message);
            }
        })
    }

    /// Reads a hello that `decode` adds to the bytes, unless it did so before.
    fn read<T>(
        &self,
        row: usize,
        read: impl FnOnce(&Hello<'_>) -> Option<T>,
        decode: impl FnOnce(&mut Decoded),
    ) -> Option<T> {
        let decoded = &mut *self.0.borrow_mut();
        if !decoded.known.has(row) {
            let start = decoded.bytes.len();
            decode(decoded);
            decoded.known.set(row);
            decoded.places.resize(BATCH, (0, 0));
            decoded.places[row] = (start, decoded.bytes.len());
        }
        let (start, end) = decoded.places[row];
        read(&Hello::new(&decoded.bytes[start..end])?)
    }
}
