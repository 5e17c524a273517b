//! OpenSSL's lists of ciphers (`openssl-ciphers(1)`), read for the suites that there are here.

use rustls::SupportedCipherSuite;
use rustls::crypto::ring::cipher_suite as offered;

/// A cipher suite of TLS 1.2 under OpenSSL's name.
#[derive(Debug)]
struct Suite {
    name: &'static str,
    suite: SupportedCipherSuite,
    is_ecdsa: bool,
    cipher: Cipher,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cipher {
    Aes256,
    ChaCha20,
    Aes128,
}

const fn suite(
    name: &'static str,
    suite: SupportedCipherSuite,
    is_ecdsa: bool,
    cipher: Cipher,
) -> Suite {
    Suite {
        name,
        suite,
        is_ecdsa,
        cipher,
    }
}

/// The suites of TLS 1.2, in OpenSSL's order.
static TLS12: [Suite; 6] = [
    suite(
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        offered::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        true,
        Cipher::Aes256,
    ),
    suite(
        "ECDHE-RSA-AES256-GCM-SHA384",
        offered::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        false,
        Cipher::Aes256,
    ),
    suite(
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        offered::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        true,
        Cipher::ChaCha20,
    ),
    suite(
        "ECDHE-RSA-CHACHA20-POLY1305",
        offered::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        false,
        Cipher::ChaCha20,
    ),
    suite(
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        offered::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        true,
        Cipher::Aes128,
    ),
    suite(
        "ECDHE-RSA-AES128-GCM-SHA256",
        offered::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        false,
        Cipher::Aes128,
    ),
];

/// The suites of TLS 1.3.
static TLS13: [(&str, SupportedCipherSuite); 3] = [
    ("TLS_AES_256_GCM_SHA384", offered::TLS13_AES_256_GCM_SHA384),
    (
        "TLS_CHACHA20_POLY1305_SHA256",
        offered::TLS13_CHACHA20_POLY1305_SHA256,
    ),
    ("TLS_AES_128_GCM_SHA256", offered::TLS13_AES_128_GCM_SHA256),
];

/// What a list selects.
#[derive(Debug)]
pub(super) struct Selection {
    /// The suites, the preferred ones first.
    pub(super) suites: Vec<SupportedCipherSuite>,
    /// What the list names that is not there.
    pub(super) missing: Vec<String>,
}

/// The words of a list.
fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split([':', ',', ' ', ';'])
        .filter(|word| !word.is_empty())
}

impl Suite {
    /// Whether the suite is in the class that `word` names; a word that names none of ours may
    /// well name others.
    fn is_in(&self, word: &str) -> bool {
        match word {
            "ALL" | "DEFAULT" | "HIGH" | "TLSv1.2" | "kECDHE" | "kEECDH" | "ECDHE" | "EECDH" => {
                true
            }
            "ECDSA" | "aECDSA" => self.is_ecdsa,
            "aRSA" => !self.is_ecdsa,
            "AES" | "AESGCM" | "FIPS" => self.cipher != Cipher::ChaCha20,
            "AES256" => self.cipher == Cipher::Aes256,
            "AES128" => self.cipher == Cipher::Aes128,
            "CHACHA20" => self.cipher == Cipher::ChaCha20,
            name => name == self.name,
        }
    }

    /// Whether it is in all of the classes that `item` joins with plus signs.
    fn fits(&self, item: &str) -> bool {
        item.split('+').all(|word| self.is_in(word))
    }

    /// Bits of the key.
    const fn strength(&self) -> u32 {
        match self.cipher {
            Cipher::Aes256 | Cipher::ChaCha20 => 256,
            Cipher::Aes128 => 128,
        }
    }
}

/// The highest security level that all our suites and what we accept of keys come up to.
const MAX_LEVEL: u32 = 2;

/// The suites of TLS 1.2 that `list` selects.
///
/// # Errors
/// What of the list cannot be honoured, or that it selects nothing that is there.
pub(super) fn tls12(list: &str) -> Result<Selection, String> {
    let mut left: Vec<&Suite> = TLS12.iter().collect();
    let mut chosen: Vec<&Suite> = Vec::new();
    let mut missing = Vec::new();
    for word in words(list) {
        if let Some(command) = word.strip_prefix('@') {
            match command.split_once('=') {
                Some(("SECLEVEL", level)) => check_level(level)?,
                None if command == "STRENGTH" => {
                    chosen.sort_by_key(|suite| std::cmp::Reverse(suite.strength()));
                }
                _ => return Err(format!("{word} is not known")),
            }
        } else if let Some(item) = word.strip_prefix('!') {
            left.retain(|suite| !suite.fits(item));
            chosen.retain(|suite| !suite.fits(item));
        } else if let Some(item) = word.strip_prefix('-') {
            let (out, stay): (Vec<_>, _) = chosen.into_iter().partition(|s| s.fits(item));
            chosen = stay;
            left.splice(0..0, out);
        } else if let Some(item) = word.strip_prefix('+') {
            let (last, first): (Vec<_>, _) = chosen.into_iter().partition(|s| s.fits(item));
            chosen = first;
            chosen.extend(last);
        } else if word.starts_with("SUITEB") {
            return Err(format!("{word} is not supported"));
        } else {
            let (added, stay): (Vec<_>, _) = left.into_iter().partition(|s| s.fits(word));
            left = stay;
            if added.is_empty() && !TLS12.iter().any(|suite| suite.fits(word)) {
                missing.push(word.to_owned());
            }
            chosen.extend(added);
        }
    }
    if chosen.is_empty() {
        return Err("it selects no cipher that is supported".to_owned());
    }
    Ok(Selection {
        suites: chosen.into_iter().map(|suite| suite.suite).collect(),
        missing,
    })
}

fn check_level(level: &str) -> Result<(), String> {
    match level.parse::<u32>() {
        Ok(number) if number <= MAX_LEVEL => Ok(()),
        _ => Err(format!(
            "@SECLEVEL={level} is not supported, only levels up to {MAX_LEVEL} are"
        )),
    }
}

/// The suites of TLS 1.3 that `list` selects.
///
/// # Errors
/// It selects nothing that is there.
pub(super) fn tls13(list: &str) -> Result<Selection, String> {
    let mut selection = Selection {
        suites: Vec::new(),
        missing: Vec::new(),
    };
    for word in words(list) {
        match TLS13.iter().find(|(name, _)| *name == word) {
            Some((_, suite)) if selection.suites.contains(suite) => {}
            Some((_, suite)) => selection.suites.push(*suite),
            None => selection.missing.push(word.to_owned()),
        }
    }
    if selection.suites.is_empty() {
        return Err("it selects no cipher suite that is supported".to_owned());
    }
    Ok(selection)
}

/// All suites of TLS 1.3.
pub(super) fn all_tls13() -> Vec<SupportedCipherSuite> {
    TLS13.iter().map(|(_, suite)| *suite).collect()
}

/// All suites of TLS 1.2.
pub(super) fn all_tls12() -> Vec<SupportedCipherSuite> {
    TLS12.iter().map(|suite| suite.suite).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Result<String, String> {
        let selection = tls12(list)?;
        let name = |suite: &SupportedCipherSuite| {
            let found = TLS12.iter().find(|s| s.suite == *suite);
            let name = found.map_or("?", |s| s.name);
            name.replace("ECDHE-", "").replace("-GCM", "")
        };
        let mut text: Vec<String> = selection.suites.iter().map(name).collect();
        text.extend(selection.missing.iter().map(|m| format!("no {m}")));
        Ok(text.join(" "))
    }

    #[test]
    fn lists_of_ciphers() {
        let all = "ECDSA-AES256-SHA384 RSA-AES256-SHA384 ECDSA-CHACHA20-POLY1305 \
                   RSA-CHACHA20-POLY1305 ECDSA-AES128-SHA256 RSA-AES128-SHA256";
        for (list, want) in [
            ("DEFAULT:@SECLEVEL=2", all),
            ("HIGH:!aNULL:!MD5", all),
            (
                "DEFAULT:!ECDHE-ECDSA-AES256-GCM-SHA384:!CHACHA20:!AES128",
                "RSA-AES256-SHA384",
            ),
            (
                "ECDHE+aRSA:!CHACHA20:+AES256",
                "RSA-AES128-SHA256 RSA-AES256-SHA384",
            ),
            (
                "AES128:AES256+ECDSA:@STRENGTH",
                "ECDSA-AES256-SHA384 ECDSA-AES128-SHA256 RSA-AES128-SHA256",
            ),
            (
                "AES256:-aRSA:CHACHA20+aRSA:AES256",
                "ECDSA-AES256-SHA384 RSA-CHACHA20-POLY1305 RSA-AES256-SHA384",
            ),
            (
                "AES256-SHA,ECDHE-RSA-AES128-GCM-SHA256",
                "RSA-AES128-SHA256 no AES256-SHA",
            ),
        ] {
            assert_eq!(names(list).as_deref(), Ok(want), "{list}");
        }
    }

    #[test]
    fn what_cannot_be_honoured_is_named() {
        for (list, why) in [
            (
                "DEFAULT:@SECLEVEL=3",
                "@SECLEVEL=3 is not supported, only levels up to 2 are",
            ),
            ("SUITEB128", "SUITEB128 is not supported"),
            ("DEFAULT:@FOO", "@FOO is not known"),
            (
                "RC4-MD5:AES256-SHA",
                "it selects no cipher that is supported",
            ),
            ("", "it selects no cipher that is supported"),
        ] {
            assert_eq!(names(list), Err(why.to_owned()), "{list}");
        }
        assert!(tls13("TLS_AES_128_CCM_SHA256").is_err());
    }

    #[test]
    fn suites_of_tls_1_3() {
        let selection =
            tls13("TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_CCM_SHA256:TLS_AES_128_GCM_SHA256");
        let selection = selection.unwrap();
        let want = [
            offered::TLS13_CHACHA20_POLY1305_SHA256,
            offered::TLS13_AES_128_GCM_SHA256,
        ];
        assert_eq!(selection.suites, want);
        assert_eq!(selection.missing, ["TLS_AES_128_CCM_SHA256"]);
        assert_eq!(all_tls12().len() + all_tls13().len(), 9);
    }
}
