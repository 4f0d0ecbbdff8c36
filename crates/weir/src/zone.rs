//! Time zones by their names: what a plan has of them, from the database of the system or, where
//! there is none, the one that comes with Weir.

use jiff::tz::{TimeZone as NamedZone, TimeZoneDatabase, db};
use jiff::{Timestamp, civil};
use weir_plan::TimeZone;

/// The years whose changes of clocks a plan has: times before have the distance from UTC that there
/// was when 1970 began, and times after that of the last change.
const YEARS: [i16; 2] = [1970, 2100];

/// The time zone of a run; `None` is UTC.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Zone(pub(crate) Option<TimeZone>);

/// Reads the name of a zone, as an option has it.
pub(crate) fn parse(name: &str) -> Result<Zone, String> {
    let zone = match name {
        "UTC" => return Ok(Zone(None)),
        "local" => NamedZone::try_system()
            .map_err(|e| format!("the time zone of this machine is not known: {e}"))?,
        name => db().get(name).map_err(|_| unknown(name, db()))?,
    };
    let name = zone.iana_name().unwrap_or(name);
    of(name, &zone)
}

/// A zone as a plan has it.
fn of(name: &str, zone: &NamedZone) -> Result<Zone, String> {
    let [first, end] = YEARS.map(|year| {
        let start = civil::date(year, 1, 1).at(0, 0, 0, 0);
        NamedZone::UTC.to_timestamp(start).unwrap_or(Timestamp::UNIX_EPOCH)
    });
    let ns = |offset: jiff::tz::Offset| i64::from(offset.seconds()) * 1_000_000_000;
    let before = ns(zone.to_offset(first));
    let (mut last, mut changes) = (before, Vec::new());
    for change in zone.following(first).take_while(|change| change.timestamp() < end) {
        let offset = ns(change.offset());
        // Else it is another name for the same time.
        if offset != last {
            changes.push((change.timestamp().as_second() * 1_000_000_000, offset));
            last = offset;
        }
    }
    if changes.is_empty() && before == 0 {
        return Ok(Zone(None));
    }
    let zone = TimeZone::new(name, before, &changes);
    zone.map(|zone| Zone(Some(zone))).ok_or_else(|| format!("`{name}` is not a usable time zone"))
}

/// Says that no zone has this name, and which may have been meant.
fn unknown(name: &str, all: &TimeZoneDatabase) -> String {
    let names: Vec<String> = all.available().map(|name| name.to_string()).collect();
    let near = weir_lang::closest(name, names.iter().map(String::as_str));
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "names are those of the IANA database, such as Europe/Berlin".to_owned(),
    };
    format!("there is no such time zone; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn zones_change_when_they_do() {
        let Zone(Some(rome)) = parse("Europe/Rome").expect("known") else { panic!("not UTC") };
        assert_eq!((rome.name(), rome.first()), ("Europe/Rome", 3600 * S));
        // 2023-03-26 01:00 UTC, and the last change before 2100.
        assert!(rome.changes().contains(&(1_679_792_400 * S, 7200 * S)));
        assert_eq!(rome.changes().last(), Some(&(4_096_573_200 * S, 3600 * S)));
        let Zone(Some(kolkata)) = parse("Asia/Kolkata").expect("known") else { panic!("not UTC") };
        assert_eq!((kolkata.first(), kolkata.changes()), (19_800 * S, &[][..]));
        let Zone(Some(apia)) = parse("Pacific/Apia").expect("known") else { panic!("not UTC") };
        // The day that Samoa left out.
        assert!(apia.changes().contains(&(1_325_239_200 * S, 14 * 3600 * S)));
    }

    #[test]
    fn names_for_utc_are_utc() {
        for name in ["UTC", "Etc/UTC", "Etc/GMT"] {
            assert_eq!(parse(name), Ok(Zone(None)), "{name}");
        }
    }

    #[test]
    fn what_is_no_zone_is_refused() {
        let told = parse("Europe/Berln").expect_err("there is none");
        assert_eq!(told, "there is no such time zone; did you mean `Europe/Berlin`?");
        for name in ["", "Berlin!", "../../etc/passwd", "/etc/localtime", "+02:00"] {
            assert!(parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn every_zone_of_the_database_is_usable() {
        for name in db().available() {
            assert!(parse(name.as_str()).is_ok(), "{name}");
        }
    }
}
