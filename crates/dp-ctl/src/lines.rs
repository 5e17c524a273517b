//! Files of flows.

/// What a line of a file of flows asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Add a flow with these actions.
    Add(&'a str, &'a str),
    /// Give a flow these actions.
    Modify(&'a str, &'a str),
    /// Remove a flow.
    Delete(&'a str),
}

/// A line without its comment; nothing if nothing else is on it.
pub fn preprocess(line: &str) -> Option<&str> {
    let line = line.split('#').next().unwrap_or_default();
    (!line.trim().is_empty()).then_some(line)
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Reads a line: a command (`add`, `modify` or `delete`, or what `command` is), a flow, and
/// the actions, which may have spaces in them.
pub fn parse_line<'a>(line: &'a str, command: &'a str) -> Option<Line<'a>> {
    let line = line.trim_matches(SPACE);
    let first = line.split(|c| c == ',' || SPACE.contains(&c)).next()?;
    let (command, rest) = match first {
        "add" | "modify" | "delete" => (first, line[first.len()..].trim_start_matches(SPACE)),
        _ => (command, line),
    };
    let (flow, actions) = match rest.split_once(SPACE) {
        Some((flow, actions)) => (flow, actions.trim_matches(SPACE)),
        None => (rest, ""),
    };
    let has_actions = !actions.is_empty();
    match command {
        _ if flow.is_empty() => None,
        "add" if has_actions => Some(Line::Add(flow, actions)),
        "modify" if has_actions => Some(Line::Modify(flow, actions)),
        "delete" if !has_actions => Some(Line::Delete(flow)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let cases = [
            ("in_port(1) 2", "add", Some(Line::Add("in_port(1)", "2"))),
            (" add\tf  1, 2 ", "delete", Some(Line::Add("f", "1, 2"))),
            ("modify f 3\r", "add", Some(Line::Modify("f", "3"))),
            ("delete f", "add", Some(Line::Delete("f"))),
            ("f", "delete", Some(Line::Delete("f"))),
            ("f", "add", None),
            ("f 2", "delete", None),
            ("delete", "add", None),
            ("add", "add", None),
        ];
        for (text, command, want) in cases {
            assert_eq!(parse_line(text, command), want, "{text}");
        }
    }

    #[test]
    fn comments_are_nothing() {
        assert_eq!(preprocess("# all"), None);
        assert_eq!(preprocess("  "), None);
        assert_eq!(preprocess("f 1 # why"), Some("f 1 "));
    }
}
