use super::*;

fn column_type(text: &str) -> ColumnType {
    let json = json::parse(format!("[{text}]").as_bytes()).expect("valid");
    ColumnType::from_json(&json.as_array().expect("array")[0]).expect("valid")
}

fn round(type_text: &str, text: &str) -> String {
    let column_type = column_type(type_text);
    match parse_datum(&column_type, text, None) {
        Ok(datum) => format_datum(&datum, &column_type),
        Err(error) => error,
    }
}

#[test]
fn strings_are_quoted_where_they_must() {
    for (text, printed) in [
        ("br0", "br0"),
        ("a.b", "a.b"),
        ("a-b", "a-b"),
        ("_x", "_x"),
        ("0a", "\"0a\""),
        ("a b", "\"a b\""),
        ("true", "\"true\""),
        ("10.0.0.1", "\"10.0.0.1\""),
        ("", "\"\""),
        ("é", "\"é\""),
        (
            "550e8400-e29b-41d4-a716-446655440000",
            "\"550e8400-e29b-41d4-a716-446655440000\"",
        ),
    ] {
        assert_eq!(format_atom(&Atom::string(text)), printed);
    }
}

#[test]
fn sets_are_read_and_printed() {
    let few = r#"{"key":"integer","min":1,"max":2}"#;
    let many = r#"{"key":"integer","min":0,"max":"unlimited"}"#;
    let optional = r#"{"key":"boolean","min":0}"#;
    let strings = r#"{"key":"string","min":0,"max":2}"#;
    for (t, text, printed) in [
        (many, "0", "[0]"),
        (many, "[0, 1,2, 3]", "[0, 1, 2, 3]"),
        (many, "0-4", "[0, 1, 2, 3, 4]"),
        (many, "1 2", "[1, 2]"),
        (optional, "yes", "true"),
        (optional, "[]", "[]"),
        (
            few,
            "1,,2",
            "1,,2: unexpected \",\" parsing set of 1 to 2 integers",
        ),
        (few, "", "use \"[]\" to specify the empty set"),
        (
            few,
            "1,2,3",
            "1,2,3: 3 value(s) specified but the maximum number is 2",
        ),
        (
            few,
            "[]",
            "[]: 0 value(s) specified but the minimum number is 1",
        ),
        (few, "[1,2", "[1,2: missing \"]\" at end of data"),
        (few, "[1]x", "[1]x: trailing garbage after \"]\""),
        (few, "1,1", "1,1: set contains duplicate value"),
        (few, "0.5", "\"0.5\" is not a valid integer or range"),
        (
            many,
            "10--10",
            "\"10--10\" is not a valid range. Range end cannot be before start.",
        ),
        (
            many,
            "1-4097",
            "constraint violation: Range \"1-4097\" is too big. Maximum allowed size is 4096.",
        ),
        (strings, "a\\b", "[ab]"),
        (strings, "\"a b\"", "[\"a b\"]"),
        (
            strings,
            "a<b",
            "a<b: unexpected \"<\" parsing set of up to 2 strings",
        ),
        (
            strings,
            "a\"b",
            "a\"b: quoted string extends past end of argument",
        ),
        (
            strings,
            "\"a\"b",
            "\"a\"b: missing quote at end of quoted string",
        ),
        (strings, "a\\", "a\\: backslash at end of argument"),
    ] {
        assert_eq!(round(t, text), printed, "{text}");
    }
}

#[test]
fn maps_are_read_and_printed() {
    let map = r#"{"key":"integer","value":"string","min":0,"max":2}"#;
    let one = r#"{"key":"integer","value":"boolean"}"#;
    for (t, text, printed) in [
        (map, "1=2", "{1=\"2\"}"),
        (map, "{1=a,}", "{1=a}"),
        (map, "1=a 3=b", "{1=a, 3=b}"),
        (map, "{}", "{}"),
        (one, "1=true", "1=true"),
        (map, "", "use \"{}\" to specify the empty map"),
        (map, "{1=2 3=4", "{1=2 3=4: missing \"}\" at end of data"),
        (
            map,
            "[1=2]",
            "[1=2]: unexpected \"[\" parsing map of up to 2 (integer, string) pairs",
        ),
        (
            map,
            "1=2=3",
            "1=2=3: unexpected \"=\" parsing map of up to 2 (integer, string) pairs",
        ),
        (map, "1:2", "1:2: syntax error at \":\" expecting \"=\""),
        (map, "1=2,3", "3: syntax error at \""),
        (map, "1=2,1=3", "1=2,1=3: map contains duplicate key"),
        (
            map,
            "1=",
            "An empty string is not valid as input; use \"\" to represent the empty string",
        ),
    ] {
        assert_eq!(round(t, text), printed, "{text}");
    }
}

#[test]
fn quoted_strings_have_rules() {
    for (text, said) in [
        ("\"asdf", "\"asdf: missing quote at end of quoted string"),
        (
            "\"as\"df\"",
            "\"as\"df\": quoted string may not include unescaped \"",
        ),
        (
            "\"asdf\\\"",
            "\"asdf\\\": quoted string may not end with backslash",
        ),
        ("\"a\\qb\"", "\"a\\qb\": bad escape \\q"),
    ] {
        assert_eq!(parse_string(text), Err(said.to_owned()));
    }
    assert_eq!(parse_string("\"a\\n\\\"\""), Ok("a\n\"".to_owned()));
}
