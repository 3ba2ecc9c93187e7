//! Times as text: days since 1970, and `2026-11-30T03:12`. Proleptic Gregorian, UTC.

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// The day of a time: milliseconds since 1970 to days since 1970, UTC.
pub fn day(ms: i64) -> i64 {
    ms.div_euclid(DAY_MS)
}

/// Year, month and day of a day since 1970.
///
/// Source: <https://howardhinnant.github.io/date_algorithms.html>, `civil_from_days`.
pub fn date(day: i64) -> (i64, i64, i64) {
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// Days since 1970 of a date; the inverse of [`date`].
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let shifted = (month + 9) % 12;
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A time as `2026-11-30T03:12:05.120Z`.
pub fn show(ms: i64) -> String {
    let (year, month, date) = date(day(ms));
    let of_day = ms.rem_euclid(DAY_MS);
    format!(
        "{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}.{:03}Z",
        of_day / 3_600_000,
        of_day / 60_000 % 60,
        of_day / 1000 % 60,
        of_day % 1000
    )
}

/// A day as `2026-11-30`.
pub fn show_day(day: i64) -> String {
    let (year, month, date) = date(day);
    format!("{year:04}-{month:02}-{date:02}")
}

/// Why a text is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no time; write 2026-11-30, 2026-11-30T03:12 or 2026-11-30T03:12:05, in UTC, or with +09:00 after it"
)]
pub struct NoTime(String);

/// Reads a day, a minute, a second or a millisecond: its beginning and its end, in milliseconds since 1970, the end not
/// included.
pub fn parse(text: &str) -> Result<(i64, i64), NoTime> {
    read(text.trim()).ok_or_else(|| NoTime(text.chars().take(40).collect()))
}

fn read(text: &str) -> Option<(i64, i64)> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.splitn(3, '-');
    let year = number(parts.next()?, 4, 0..=9999)?;
    let month = number(parts.next()?, 2, 1..=12)?;
    let day = number(parts.next()?, 2, 1..=31)?;
    let midnight = days(year, month, day);
    // a day that its month does not have
    if self::date(midnight) != (year, month, day) {
        return None;
    }
    let midnight = midnight * DAY_MS;
    let Some(time) = time else {
        return Some((midnight, midnight + DAY_MS));
    };
    let zone = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone);
    let offset = offset(zone)?;
    let mut parts = time.splitn(3, ':');
    let mut at = midnight + number(parts.next()?, 2, 0..=23)? * 3_600_000 - offset;
    at += number(parts.next()?, 2, 0..=59)? * 60_000;
    let Some(seconds) = parts.next() else {
        return Some((at, at + 60_000));
    };
    let (seconds, fraction) = match seconds.split_once('.') {
        Some((seconds, fraction)) => (seconds, Some(fraction)),
        None => (seconds, None),
    };
    at += number(seconds, 2, 0..=59)? * 1000;
    match fraction {
        None => Some((at, at + 1000)),
        Some(fraction) => {
            at += number(fraction, 3, 0..=999)?;
            Some((at, at + 1))
        }
    }
}

/// `Z`, nothing, or `+09:00`, in milliseconds.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "Z" | "z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let minutes = number(hours, 2, 0..=14)? * 60 + number(minutes, 2, 0..=59)?;
    Some(sign * minutes * 60_000)
}

fn number(text: &str, digits: usize, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
    let plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    let number = plain.then(|| text.parse().ok())??;
    range.contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_shown() {
        for ms in [
            0,
            951_782_400_000,
            1_796_008_325_120,
            4_107_542_399_999,
            -1,
            1_709_164_800_000,
        ] {
            assert_eq!(parse(&show(ms)), Ok((ms, ms + 1)), "{}", show(ms));
        }
        assert_eq!(show(1_796_008_325_120), "2026-11-30T03:12:05.120Z");
        assert_eq!(show_day(day(1_796_008_325_120)), "2026-11-30");
    }

    #[test]
    fn the_precision_of_a_time_is_how_long_it_is() {
        let at = 1_796_008_320_000;
        assert_eq!(parse("2026-11-30T03:12"), Ok((at, at + 60_000)));
        assert_eq!(parse("2026-11-30 03:12"), Ok((at, at + 60_000)));
        assert_eq!(parse("2026-11-30T12:12+09:00"), Ok((at, at + 60_000)));
        assert_eq!(parse("2026-11-29T22:12:00-05:00"), Ok((at, at + 1000)));
        let midnight = at - (3 * 60 + 12) * 60_000;
        assert_eq!(parse("2026-11-30"), Ok((midnight, midnight + DAY_MS)));
    }

    #[test]
    fn what_is_no_time_is_told() {
        for text in [
            "",
            "yesterday",
            "2026-02-30",
            "2026-13-01",
            "2026-1-1",
            "2026-11-30T24:00",
            "2026-11-30T3:12",
            "2026-11-30T03:12+9",
            "2026-11-30T03:12:99",
            "2026-11-30T03",
            "2026-11-30T03:12:05.1",
            "２026-11-30",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_has_its_date() {
        let (mut before, first) = ((1969, 12, 31), days(1970, 1, 1));
        assert_eq!(first, 0);
        for day in 0..146_097 {
            let now = date(day);
            assert_eq!(days(now.0, now.1, now.2), day);
            assert!(now > before);
            before = now;
        }
    }
}
