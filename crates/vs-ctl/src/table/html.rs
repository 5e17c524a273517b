//! HTML tables, in which row identifiers are anchors and references to them links.

use super::{Cell, Style, Table};

/// Length of a UUID as text.
const UUID_LEN: usize = 36;

/// Appends `table` as an HTML table.
pub(super) fn format(table: &Table, style: &Style, out: &mut String) {
    out.push_str("<table border=1>\n");
    if let Some(caption) = &table.caption {
        out.push_str("    <caption>");
        escape(caption, out);
        out.push_str("</caption>\n");
    }
    if style.headings {
        out.push_str("  <tr>\n");
        for heading in &table.headings {
            out.push_str("    <th>");
            escape(heading, out);
            out.push_str("</th>\n");
        }
        out.push_str("  </tr>\n");
    }
    for row in &table.rows {
        out.push_str("  <tr>\n");
        for (heading, cell) in table.headings.iter().zip(row) {
            out.push_str("    <td>");
            format_cell(heading, cell, out);
            out.push_str("</td>\n");
        }
        out.push_str("  </tr>\n");
    }
    out.push_str("</table>\n");
}

fn format_cell(heading: &str, cell: &Cell, out: &mut String) {
    let text = cell.text();
    if heading == "_uuid" {
        out.push_str("<a name=\"");
        escape(&text, out);
        out.push_str("\">");
        escape(&text[..text.floor_char_boundary(8)], out);
        out.push_str("</a>");
        return;
    }
    let mut rest = text.as_str();
    while let Some(at) = find_uuid(rest) {
        escape(&rest[..at], out);
        let uuid = &rest[at..at + UUID_LEN];
        *out += &format!("<a href=\"#{uuid}\">{}</a>", &uuid[..8]);
        rest = &rest[at + UUID_LEN..];
    }
    escape(rest, out);
}

/// Where the first UUID in `text` begins.
fn find_uuid(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    bytes.windows(UUID_LEN).position(|window| {
        window.iter().enumerate().all(|(i, byte)| match i {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    })
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
}
