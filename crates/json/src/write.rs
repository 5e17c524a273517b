//! From value to text.

use std::fmt::{self, Write};

use crate::{Json, real_to_string};

impl fmt::Display for Json {
    /// Compact text; `{:#}` prints a member or element a line, as `--pretty` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        if f.alternate() {
            self.write_pretty(&mut text, 0);
        } else {
            self.write_compact(&mut text);
        }
        f.write_str(&text)
    }
}

impl Json {
    /// Compact text, in one allocation that is sized by `hint` bytes.
    pub fn to_text(&self, hint: usize) -> String {
        let mut text = String::with_capacity(hint);
        self.write_compact(&mut text);
        text
    }

    /// Appends compact text to `out`: no white space, members sorted by name.
    pub fn write_compact(&self, out: &mut String) {
        match self {
            Self::Array(elements) => {
                out.push('[');
                for (i, element) in elements.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    element.write_compact(out);
                }
                out.push(']');
            }
            Self::Object(object) => {
                out.push('{');
                for (i, (name, value)) in object.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_quoted(name, out);
                    out.push(':');
                    value.write_compact(out);
                }
                out.push('}');
            }
            scalar => scalar.write_scalar(out),
        }
    }

    fn write_scalar(&self, out: &mut String) {
        match self {
            Self::Boolean(true) => out.push_str("true"),
            Self::Boolean(false) => out.push_str("false"),
            Self::Integer(integer) => {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "{integer}");
            }
            Self::Real(real) => write_real(*real, out),
            Self::String(text) => write_quoted(text, out),
            Self::Serialized(text) => out.push_str(text),
            Self::Null | Self::Array(_) | Self::Object(_) => out.push_str("null"),
        }
    }

    fn write_pretty(&self, out: &mut String, depth: usize) {
        match self {
            Self::Array(elements) if !elements.is_empty() => {
                out.push('[');
                for (i, element) in elements.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    new_line(out, depth + 1);
                    element.write_pretty(out, depth + 1);
                }
                out.push(']');
            }
            Self::Object(object) if !object.is_empty() => {
                out.push('{');
                for (i, (name, value)) in object.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    new_line(out, depth + 1);
                    write_quoted(name, out);
                    out.push_str(": ");
                    value.write_pretty(out, depth + 1);
                }
                out.push('}');
            }
            other => other.write_compact(out),
        }
    }
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', 2 * depth));
}

/// Appends a real with 15 significant digits.
pub fn write_real(real: f64, out: &mut String) {
    out.push_str(&real_to_string(real));
}

/// Appends `text` as a JSON string, quotes included.  Only quotes, backslashes and control
/// characters below U+0020 are escaped.
pub fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (i, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        // Every byte handled here is ASCII, so both cuts lie between characters.
        out.push_str(&text[plain..i]);
        plain = i + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            0x0c => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            _ => {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use crate::{Json, parse};

    #[test]
    fn strings_are_escaped_only_where_they_must() {
        let text = Json::from("\u{1}\u{8}\t\n\u{c}\r\"\\/\u{7f}é").to_string();
        assert_eq!(text, "\"\\u0001\\b\\t\\n\\f\\r\\\"\\\\/\u{7f}é\"");
    }

    #[test]
    fn pretty_text_closes_on_the_last_line() {
        let value = parse(br#"{"b":[1,[],{}],"a":{"x":null}}"#).expect("valid");
        let pretty = "{\n  \"a\": {\n    \"x\": null},\n  \"b\": [\n    1,\n    [],\n    {}]}";
        assert_eq!(format!("{value:#}"), pretty);
    }

    #[test]
    fn serialised_text_is_copied() {
        let value = Json::Array(vec![
            Json::Serialized("{\"z\":1,\"a\":2}".into()),
            Json::Null,
        ]);
        assert_eq!(value.to_string(), "[{\"z\":1,\"a\":2},null]");
    }
}
