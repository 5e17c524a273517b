//! Settings of tables as bytes and as text, recorded from Open vSwitch 3.7.1.

use net_flow::Names;
use of_wire::message::{Body, Part, TableMod, Vacancy};
use of_wire::print::{Style, message_text};
use of_wire::{Dialect, ErrorCode, Message, Version};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|p| std::str::from_utf8(p).unwrap());
    pairs.map(|p| u8::from_str_radix(p, 16).unwrap()).collect()
}

fn printed(bytes: &[u8]) -> String {
    let names = Names::default();
    let style = Style {
        names: &names,
        verbosity: 0,
    };
    message_text(bytes, style)
}

fn settings() -> Vec<(Version, &'static str, Body, &'static str)> {
    let on = Some(Vacancy::On {
        down: 20,
        up: 80,
        now: 0,
    });
    let of14 = TableMod {
        eviction: Some(false),
        vacancy: Some(Vacancy::Off),
        ..TableMod::of(2)
    };
    vec![
        (
            Version::V11,
            "0211001000000002 02000000 00000002",
            Body::TableMod(TableMod {
                miss: Some(2),
                ..TableMod::of(2)
            }),
            "OFPT_TABLE_MOD (OF1.1) (xid=0x2): table_id=2, flow_miss_config=drop\n",
        ),
        (
            Version::V13,
            "0411001000000002 ff000000 00000000",
            Body::TableMod(TableMod::of(255)),
            "OFPT_TABLE_MOD (OF1.3) (xid=0x2): table_id: ALL_TABLES\n",
        ),
        (
            Version::V14,
            "0511001000000002 02000000 00000000",
            Body::TableMod(of14),
            "OFPT_TABLE_MOD (OF1.4) (xid=0x2): table_id=2, eviction=off, vacancy=off\n",
        ),
        (
            Version::V15,
            "0611001800000002 02000000 0000000c 00030008 14500000",
            Body::TableMod(TableMod {
                eviction: Some(true),
                vacancy: on,
                ..of14
            }),
            "OFPT_TABLE_MOD (OF1.5) (xid=0x2): table_id=2, eviction=on, vacancy=on vacancy:20,80\n",
        ),
        (
            Version::V14,
            "0512001000000002 000e0000 00000000",
            Body::TableDescRequest,
            "OFPST_TABLE_DESC request (OF1.4) (xid=0x2):\n",
        ),
        (
            Version::V14,
            "0513003800000002 000e0000 00000000 \
             0010 0000 00000004 00020008 00000007 \
             0018 0100 00000008 00020008 00000005 00030008 14503200",
            Body::TableDescReply(Part::last(vec![
                TableMod {
                    eviction: Some(true),
                    eviction_flags: Some(7),
                    vacancy: Some(Vacancy::Off),
                    ..TableMod::of(0)
                },
                TableMod {
                    eviction: Some(false),
                    eviction_flags: Some(5),
                    vacancy: Some(Vacancy::On {
                        down: 20,
                        up: 80,
                        now: 50,
                    }),
                    ..TableMod::of(1)
                },
            ])),
            "OFPST_TABLE_DESC reply (OF1.4) (xid=0x2):\n  table 0:\n   \
             eviction=on eviction_flags=OTHER|IMPORTANCE|LIFETIME\n   vacancy=off\n\n  \
             table 1:\n   eviction=off eviction_flags=OTHER|LIFETIME\n   \
             vacancy=on vacancy_down=20% vacancy_up=80% vacancy=50%\n",
        ),
    ]
}

#[test]
fn settings_are_written_read_and_printed_as_recorded() {
    for (version, hex, body, text) in settings() {
        let bytes = bytes(hex);
        let message = Message::new(version, 2, body);
        assert_eq!(message.encode(Dialect::of(version)), bytes, "{text}");
        let decoded = Message::decode(&bytes, Dialect::of(version));
        assert_eq!(decoded, Ok(message), "{text}");
        assert_eq!(printed(&bytes), text);
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for (hex, error) in [
        ("00030008 50140000", ErrorCode::OfpbpcBadValue),
        ("00030008 14650000", ErrorCode::OfpbpcBadValue),
        ("00030008 14500100", ErrorCode::OfpbpcBadValue),
        ("00030006 14500000", ErrorCode::OfpbpcBadLen),
        ("00030010 14500000", ErrorCode::OfpbpcBadLen),
        ("00010008 14500000", ErrorCode::OfpbpcBadType),
        ("00020003 00000007", ErrorCode::OfpbpcBadLen),
    ] {
        let head = "0511001800000002 02000000 00000008 ";
        let decoded = Message::decode(&bytes(&[head, hex].concat()), Dialect::of(Version::V14));
        assert_eq!(decoded, Err(error), "{hex}");
    }
}

#[test]
fn no_bytes_whatever_upset_the_decoder() {
    for (version, hex, ..) in settings() {
        let whole = bytes(hex);
        for at in 8..whole.len() {
            for value in [0, 1, 7, 8, 0x7f, 0xff] {
                let mut mangled = whole.clone();
                mangled[at] = value;
                let _ = Message::decode(&mangled, Dialect::of(version));
                let _ = printed(&mangled);
                mangled.truncate(at);
                mangled[3] = at as u8;
                let _ = Message::decode(&mangled, Dialect::of(version));
            }
        }
    }
}
