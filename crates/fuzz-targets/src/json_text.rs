//! Bytes on a JSON-RPC connection.

use json::{Json, Parser};

/// Parses documents out of a stream, cut at every place that the input's first byte says.
///
/// # Panics
/// When the result depends on how the stream was cut, or does not survive being written.
pub fn json_text(bytes: &[u8]) {
    let Some((&first, text)) = bytes.split_first() else {
        return;
    };
    let piece = usize::from(first % 16) + 1;
    let whole = documents(text, text.len().max(1));
    let pieces = documents(text, piece);
    assert_eq!(
        whole.len(),
        pieces.len(),
        "as many documents in pieces as at once"
    );
    for (one, other) in whole.iter().zip(&pieces) {
        assert_eq!(one, other, "the same documents in pieces as at once");
        if let Ok(value) = one {
            // Reals are written with 15 digits and may become whole numbers by that, so it is
            // the text of the second writing that must be stable.
            let text = rewritten(&value.to_string());
            assert_eq!(rewritten(&text), text);
        }
    }
}

fn rewritten(text: &str) -> String {
    let value = json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error} in {text}"));
    value.to_string()
}

/// The documents in `text`, fed in pieces of `piece` bytes, up to the first error.
fn documents(text: &[u8], piece: usize) -> Vec<Result<Json, String>> {
    let mut parser = Parser::new();
    let mut found = Vec::new();
    for mut chunk in text.chunks(piece) {
        while !chunk.is_empty() {
            let used = parser.feed(chunk);
            chunk = &chunk[used..];
            if !parser.is_done() {
                continue;
            }
            let document = parser.take().map_err(|e| e.to_string());
            let failed = document.is_err();
            found.push(document);
            if failed {
                return found;
            }
        }
    }
    found
}
