//! A record of the topic, as the source of the job hands it over.

use weir_kafka::record::RecordView;

/// The length of a field that is not there.
const NONE: u32 = u32::MAX;

/// A record of the topic of partial results.
#[derive(Clone, Copy, Debug)]
pub struct TopicRecord<'a> {
    /// Key, value and headers.
    pub view: RecordView<'a>,
    /// Whether it says that nothing waits for its probe any more.
    pub retires: bool,
}

impl<'a> TopicRecord<'a> {
    /// Reads a record: the key, and the values of the headers `weir-epoch`, `weir-part`, `weir-end`
    /// and `weir-retire`, each after its length as a u32 (big endian; all ones where it is not
    /// there); then the value. `None` if it breaks off.
    pub fn read(bytes: &'a [u8]) -> Option<TopicRecord<'a>> {
        let mut rest = bytes;
        let mut field = || {
            let (len, after) = rest.split_first_chunk::<4>()?;
            let len = u32::from_be_bytes(*len);
            if len == NONE {
                rest = after;
                return Some(None);
            }
            let (text, after) = after.split_at_checked(len as usize)?;
            rest = after;
            Some(Some(text))
        };
        let [key, epoch, part, end, retire] = [field()?, field()?, field()?, field()?, field()?];
        let view = RecordView { key: key.unwrap_or_default(), value: rest, epoch, part, end };
        Some(TopicRecord { view, retires: retire.is_some() })
    }

    /// The bytes that [`TopicRecord::read`] reads.
    pub fn bytes(&self) -> Vec<u8> {
        let RecordView { key, value, epoch, part, end } = self.view;
        let mut out = Vec::new();
        let retire = self.retires.then_some(&[][..]);
        for field in [Some(key), epoch, part, end, retire] {
            out.extend(field.map_or(NONE, |text| text.len() as u32).to_be_bytes());
            out.extend(field.unwrap_or_default());
        }
        out.extend(value);
        out
    }
}
