use super::*;

/// Feeds `text` whole and byte by byte; both must agree.
fn outcome(text: &[u8]) -> Result<String, String> {
    let whole = parse(text)
        .map(|v| v.to_string())
        .map_err(|e| e.to_string());
    let mut parser = Parser::new();
    let mut used = 0;
    for i in 0..text.len() {
        used += parser.feed(&text[i..=i]);
        if parser.is_done() {
            break;
        }
    }
    let pieces = parser
        .finish_document(&text[used..])
        .map(|v| v.to_string())
        .map_err(|e| e.to_string());
    assert_eq!(whole, pieces, "{}", String::from_utf8_lossy(text));
    whole
}

#[test]
fn documents_are_read() {
    for (text, value) in [
        (" [   ] ", "[]"),
        ("[ 1, 2, 3 ]", "[1,2,3]"),
        (
            r#"[ " \" \\ \/ \b \f \n \r \t" ]"#,
            r#"[" \" \\ / \b \f \n \r \t"]"#,
        ),
        (
            r#"[ " \u0022 \u005c \u002F \u0008 \u000c \u000A \u000d \u0009" ]"#,
            r#"[" \" \\ / \b \f \n \r \t"]"#,
        ),
        (r#"["\ud834\udd1e"]"#, "[\"𝄞\"]"),
        (r#"["\\"]"#, r#"["\\"]"#),
        (
            r#"{"b": 2, "a": 1, "c": [true,false,null]}"#,
            r#"{"a":1,"b":2,"c":[true,false,null]}"#,
        ),
        (r#"{"a":1,"a":{"a":2}}"#, r#"{"a":{"a":2}}"#),
    ] {
        assert_eq!(outcome(text.as_bytes()).as_deref(), Ok(value), "{text}");
    }
}

#[test]
fn errors_name_the_place_and_the_fault() {
    for (text, error) in [
        (
            "[1,\n 2,\n  3 4]",
            "line 2, column 5, byte 13: syntax error expecting ']' or ','",
        ),
        (
            "[nullx]",
            "line 0, column 6, byte 6: invalid keyword 'nullx'",
        ),
        (r#"["ab\x"]"#, "line 0, column 6, byte 6: bad escape \\x"),
        (
            "[1e9999 ,2]",
            "line 0, column 7, byte 7: number outside valid range",
        ),
        (
            "[-]",
            "line 0, column 2, byte 2: '-' must be followed by digit",
        ),
        (
            "[0123]",
            "line 0, column 5, byte 5: leading zeros not allowed",
        ),
        (
            "[\"a\nb\"]",
            "line 0, column 3, byte 3: U+000A must be escaped in quoted string",
        ),
        ("x", "line 0, column 1, byte 1: invalid keyword 'x'"),
        ("[] x", "line 0, column 4, byte 4: invalid keyword 'x'"),
        (
            r#"{"a":1}{"a":2}"#,
            "line 0, column 7, byte 7: trailing garbage at end of input",
        ),
        ("[1", "line 0, column 2, byte 2: unexpected end of input"),
        (
            "[\"abc",
            "line 0, column 5, byte 5: unexpected end of input in quoted string",
        ),
        ("[a1_b]", "line 0, column 2, byte 2: invalid keyword 'a'"),
        (
            "[\x7f]",
            "line 0, column 1, byte 1: invalid character U+007f",
        ),
        (";", "line 0, column 0, byte 0: invalid character ';'"),
        ("[\0]", "line 0, column 1, byte 1: invalid character U+0000"),
        ("", "line 0, column 0, byte 0: empty input stream"),
        (
            "1 ",
            "line 0, column 1, byte 1: syntax error at beginning of input",
        ),
        (
            "[1,]",
            "line 0, column 3, byte 3: syntax error expecting value",
        ),
        (
            "{\"a\" 1}",
            "line 0, column 6, byte 6: syntax error parsing object expecting ':'",
        ),
        (
            "{\"a\":1,}",
            "line 0, column 7, byte 7: syntax error parsing object expecting string",
        ),
        (
            r#"["\u1x"]"#,
            "line 0, column 6, byte 6: quoted string ends within \\u escape",
        ),
        (
            r#"["\u0000"]"#,
            "line 0, column 8, byte 8: null bytes not supported in quoted strings",
        ),
        (
            r#"["\ud834xxx"]"#,
            "line 0, column 11, byte 11: malformed escaped surrogate pair",
        ),
    ] {
        assert_eq!(outcome(text.as_bytes()), Err(error.to_owned()), "{text}");
    }
}

#[test]
fn nesting_is_limited() {
    let deep = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
    assert!(outcome(&deep(MAX_DEPTH)).is_ok());
    let error = outcome(&deep(MAX_DEPTH + 1)).expect_err("too deep");
    assert!(
        error.ends_with("input exceeds maximum nesting depth 1000"),
        "{error}"
    );
}

#[test]
fn bytes_that_are_not_utf8_are_refused() {
    let error = outcome(b"[\"a\xff\"]").expect_err("not UTF-8");
    assert!(error.contains("invalid UTF-8 sequence 0xff"), "{error}");
}

#[test]
fn documents_of_a_stream_are_framed() {
    let stream = b"{}  [1]\n{\"a\":\"}{\"}[]";
    let mut parser = Parser::new();
    let (mut at, mut documents) = (0, Vec::new());
    while at < stream.len() {
        at += parser.feed(&stream[at..]);
        if parser.is_done() {
            documents.push(parser.take().expect("valid").to_string());
        }
    }
    assert_eq!(documents, ["{}", "[1]", "{\"a\":\"}{\"}", "[]"]);
    assert!(parser.is_empty());
}

/// All members of the objects that are members of `json`, with the names that lead to them.
fn members(json: &Json, found: &mut Vec<(String, String, String)>) {
    for (outer, value) in json.as_object().expect("an object").iter() {
        for (inner, value) in value
            .as_object()
            .into_iter()
            .flat_map(|object| object.iter())
        {
            found.push((outer.to_string(), inner.to_string(), value.to_string()));
        }
    }
}

#[test]
fn members_are_drained_as_they_come() {
    let text = br#"{"n":1,"a":{"x":{"y":{"z":[1,{"w":2}]}},"u":null,"v":[]},"s":"{","b":{"c":{"d":3}},"e":{}}"#;
    let mut expected = Vec::new();
    members(&parse(text).expect("valid"), &mut expected);
    expected.sort();
    for piece in 1..=text.len() {
        let mut parser = Parser::new();
        let mut found = Vec::new();
        for part in text.chunks(piece) {
            parser.feed(part);
            if let Some((outer, drained)) = parser.drain_members() {
                let drained = drained.into_iter();
                found.extend(drained.map(|(inner, value)| {
                    (outer.to_string(), inner.to_string(), value.to_string())
                }));
            }
            assert!(parser.drain_members().is_none());
        }
        let rest = parser.finish_document(b"").expect("valid");
        assert_eq!(rest.get("n"), Some(&Json::Integer(1)));
        members(&rest, &mut found);
        found.sort();
        assert_eq!(found, expected, "{piece}");
    }
}
