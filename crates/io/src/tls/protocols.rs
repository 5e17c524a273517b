//! Which versions of TLS are used: `--ssl-protocols`.

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

type Version = &'static SupportedProtocolVersion;

/// The versions that there are, the oldest first.
static KNOWN: [(&str, Version); 2] = [("TLSv1.2", &TLS12), ("TLSv1.3", &TLS13)];

/// The places in [`KNOWN`] from and up to which versions are used; and whether later ones, when
/// there are any, are too.
#[derive(Debug, PartialEq)]
struct Range {
    first: usize,
    last: usize,
    or_later: bool,
}

/// The words of a list or a range, and whether what is later than the one word counts as well.
fn words(text: &str) -> (Vec<&str>, bool) {
    if let Some(word) = text.strip_suffix('+') {
        return (vec![word], true);
    }
    if let Some((first, last)) = text.split_once('-') {
        return (vec![first, last], false);
    }
    let words = text.split([' ', ',', '\t']).filter(|word| !word.is_empty());
    (words.collect(), false)
}

/// Reads a list (`TLSv1.2,TLSv1.3`), a range (`TLSv1.2-TLSv1.3`) or a least version
/// (`TLSv1.2+`).  The errors name what is not known.
fn parse(text: &str) -> Result<Range, Vec<String>> {
    let (words, or_later) = words(text);
    if words.is_empty() {
        return Err(vec!["SSL/TLS protocol settings invalid".to_owned()]);
    }
    let place = |word: &&str| KNOWN.iter().position(|(name, _)| name == word);
    let unknown = words.iter().filter(|word| place(word).is_none());
    let errors: Vec<String> = unknown
        .map(|word| format!("{word}: SSL/TLS protocol not recognized"))
        .collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let places = || words.iter().filter_map(place);
    let first = places().min().unwrap_or(0);
    let last = if or_later {
        KNOWN.len() - 1
    } else {
        places().max().unwrap_or(first)
    };
    Ok(Range {
        first,
        last,
        or_later,
    })
}

/// The versions that `text` wants; all without one, and, after a line in the log, if it cannot
/// be read.
pub(super) fn versions(text: Option<&str>) -> Vec<Version> {
    let all = || KNOWN.iter().map(|(_, version)| *version).collect();
    let Some(text) = text else {
        return all();
    };
    match parse(text) {
        Ok(range) => {
            let first = KNOWN[range.first].0;
            if range.or_later {
                log::debug!(target: "stream_ssl", "Enabled protocol range: {first} or later");
            } else {
                let last = KNOWN[range.last].0;
                log::debug!(target: "stream_ssl", "Enabled protocol range: {first} - {last}");
            }
            let used = KNOWN[range.first..=range.last].iter();
            used.map(|(_, version)| *version).collect()
        }
        Err(errors) => {
            for error in errors {
                log::error!(target: "stream_ssl", "{error}");
            }
            all()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let range = |first, last, or_later| {
            Ok(Range {
                first,
                last,
                or_later,
            })
        };
        let unknown = |word: &str| Err(vec![format!("{word}: SSL/TLS protocol not recognized")]);
        for (text, want) in [
            ("TLSv1.2,TLSv1.3", range(0, 1, false)),
            ("TLSv1.3 TLSv1.2", range(0, 1, false)),
            ("TLSv1.2-TLSv1.3", range(0, 1, false)),
            ("TLSv1.3-TLSv1.2", range(0, 1, false)),
            ("TLSv1.2", range(0, 0, false)),
            ("TLSv1.2+", range(0, 1, true)),
            ("TLSv1.3+", range(1, 1, true)),
            (
                "TLSv1.2-TLSv1.3,TLSv1.3+",
                unknown("TLSv1.2-TLSv1.3,TLSv1.3"),
            ),
            ("TLSv1.2+TLSv1.3", unknown("TLSv1.2+TLSv1.3")),
            ("TLSv1.1", unknown("TLSv1.1")),
            (
                "",
                Err(vec!["SSL/TLS protocol settings invalid".to_owned()]),
            ),
        ] {
            assert_eq!(parse(text), want, "{text}");
        }
        assert_eq!(versions(Some("TLSv1.3")).len(), 1);
        assert_eq!(versions(Some("SSLv3")).len(), 2);
        assert_eq!(versions(None).len(), 2);
    }
}
