//! Messages.

use std::sync::Arc;

use json::{Json, Object, write_quoted};

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Asks for an answer with the same id.
    Request {
        /// What is asked.
        method: Arc<str>,
        /// Its parameters, an array.
        params: Json,
        /// Not null.
        id: Json,
    },
    /// Wants no answer.
    Notification {
        /// What is told.
        method: Arc<str>,
        /// Its parameters, an array.
        params: Json,
    },
    /// Answers a request.
    Reply {
        /// The answer.
        result: Json,
        /// The id of the request.
        id: Json,
    },
    /// Refuses a request.
    Error {
        /// The reason.
        error: Json,
        /// The id of the request.
        id: Json,
    },
}

impl Message {
    /// A request.
    pub fn request(method: &str, params: Vec<Json>, id: Json) -> Self {
        Self::Request {
            method: method.into(),
            params: Json::Array(params),
            id,
        }
    }

    /// A notification.
    pub fn notification(method: &str, params: Vec<Json>) -> Self {
        Self::Notification {
            method: method.into(),
            params: Json::Array(params),
        }
    }

    /// The answer to the request with `id`.
    pub fn reply(result: Json, id: Json) -> Self {
        Self::Reply { result, id }
    }

    /// The refusal of the request with `id`.
    pub fn error(error: Json, id: Json) -> Self {
        Self::Error { error, id }
    }

    /// The name of the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Request { .. } => "request",
            Self::Notification { .. } => "notification",
            Self::Reply { .. } => "reply",
            Self::Error { .. } => "error",
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// Says what a message must or must not have.
    pub fn from_json(json: Json) -> Result<Self, String> {
        let Json::Object(mut object) = json else {
            return Err("message is not a JSON object".to_owned());
        };
        let method = match object.remove("method") {
            None => None,
            Some(Json::String(method)) => Some(method),
            Some(_) => return Err("method is not a JSON string".to_owned()),
        };
        let params = object.remove("params");
        let answered = object.contains("result");
        let mut take = |name| object.remove(name).filter(|value| *value != Json::Null);
        let (result, error, id) = (take("result"), take("error"), take("id"));
        if let Some((name, _)) = object.iter().next() {
            return Err(format!("unexpected member \"{name}\""));
        }
        if params.as_ref().is_some_and(|p| p.as_array().is_none()) {
            return Err("\"params\" must be JSON array".to_owned());
        }
        let null_reply = answered && error.is_none() && method.is_none() && id.is_some();
        // What the kind wants: method, params, result, error, id.
        let (kind, wanted) = if result.is_some() || null_reply {
            ("reply", [false, false, true, false, true])
        } else if error.is_some() {
            ("error", [false, false, false, true, true])
        } else if id.is_some() {
            ("request", [true, true, false, false, true])
        } else {
            ("notification", [true, true, false, false, false])
        };
        let present = [
            method.is_some(),
            params.is_some(),
            result.is_some() || null_reply,
            error.is_some(),
            id.is_some(),
        ];
        let names = ["method", "params", "result", "error", "id"];
        for ((name, present), wanted) in names.iter().zip(present).zip(wanted) {
            if present != wanted {
                let not = if wanted { "" } else { " not" };
                return Err(format!("{kind} must{not} have \"{name}\""));
            }
        }
        let id = id.unwrap_or(Json::Null);
        Ok(match (method, params, error) {
            (Some(method), Some(params), _) if kind == "request" => {
                Self::Request { method, params, id }
            }
            (Some(method), Some(params), _) => Self::Notification { method, params },
            (_, _, Some(error)) => Self::Error { error, id },
            _ => Self::Reply {
                result: result.unwrap_or(Json::Null),
                id,
            },
        })
    }

    /// The message as JSON.
    pub fn to_json(&self) -> Json {
        let object = match self {
            Self::Request { method, params, id } => Object::new()
                .with("id", id.clone())
                .with("method", method.clone())
                .with("params", params.clone()),
            Self::Notification { method, params } => Object::new()
                .with("id", Json::Null)
                .with("method", method.clone())
                .with("params", params.clone()),
            Self::Reply { result, id } => Object::new()
                .with("error", Json::Null)
                .with("id", id.clone())
                .with("result", result.clone()),
            Self::Error { error, id } => Object::new()
                .with("error", error.clone())
                .with("id", id.clone())
                .with("result", Json::Null),
        };
        Json::Object(object)
    }

    /// Writes the text of the message in pieces: `text` gets what is written here, `shared` is
    /// called for each serialised part that is large, in its place.
    pub(super) fn write(&self, text: &mut String, shared: &mut dyn FnMut(&mut String, &Arc<str>)) {
        let (method, params, id) = match self {
            Self::Request { method, params, id } => (method, params, id),
            Self::Notification { method, params } => (method, params, &Json::Null),
            Self::Reply { result, id } => {
                text.push_str("{\"error\":null,\"id\":");
                id.write_compact(text);
                text.push_str(",\"result\":");
                write_value(result, text, shared);
                text.push('}');
                return;
            }
            Self::Error { error, id } => {
                text.push_str("{\"error\":");
                error.write_compact(text);
                text.push_str(",\"id\":");
                id.write_compact(text);
                text.push_str(",\"result\":null}");
                return;
            }
        };
        text.push_str("{\"id\":");
        id.write_compact(text);
        text.push_str(",\"method\":");
        write_quoted(method, text);
        text.push_str(",\"params\":");
        write_value(params, text, shared);
        text.push('}');
    }

    /// What debug log lines say of the message after its kind.
    pub(super) fn details(&self) -> String {
        match self {
            Self::Request { method, params, id } => {
                format!(", method=\"{method}\", params={params}, id={id}")
            }
            Self::Notification { method, params } => {
                format!(", method=\"{method}\", params={params}")
            }
            Self::Reply { result, id } => format!(", result={result}, id={id}"),
            Self::Error { error, id } => format!(", error={error}, id={id}"),
        }
    }
}

/// Serialised parts of at least this size are not copied.
const SHARED: usize = 2048;

fn write_value(value: &Json, text: &mut String, shared: &mut dyn FnMut(&mut String, &Arc<str>)) {
    match value {
        Json::Serialized(part) if part.len() >= SHARED => shared(text, part),
        Json::Array(elements) => {
            text.push('[');
            for (i, element) in elements.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                write_value(element, text, shared);
            }
            text.push(']');
        }
        other => other.write_compact(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Message, String> {
        Message::from_json(json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn messages_go_both_ways() {
        for text in [
            r#"{"id":1,"method":"echo","params":[1,"a"]}"#,
            r#"{"id":null,"method":"update","params":[]}"#,
            r#"{"error":null,"id":"x","result":{"a":1}}"#,
            r#"{"error":"no","id":[1],"result":null}"#,
            r#"{"error":null,"id":2,"result":null}"#,
        ] {
            let message = parse(text).unwrap();
            assert_eq!(message.to_json().to_string(), text);
            let mut written = String::new();
            message.write(&mut written, &mut |_, _| unreachable!());
            assert_eq!(written, text);
        }
    }

    #[test]
    fn bad_messages() {
        let check = |text, expected: &str| assert_eq!(parse(text), Err(expected.to_owned()));
        check("[]", "message is not a JSON object");
        check(r#"{"method":1}"#, "method is not a JSON string");
        check(
            r#"{"method":"a","params":{}}"#,
            "\"params\" must be JSON array",
        );
        check(r#"{"method":"a"}"#, "notification must have \"params\"");
        check(r#"{"id":1,"params":[]}"#, "request must have \"method\"");
        check(r#"{"result":1}"#, "reply must have \"id\"");
        check(
            r#"{"result":1,"id":1,"method":"a"}"#,
            "reply must not have \"method\"",
        );
        check(
            r#"{"result":1,"id":1,"error":2}"#,
            "reply must not have \"error\"",
        );
        check(r#"{"id":1,"foo":2}"#, "unexpected member \"foo\"");
    }

    #[test]
    fn large_serialised_parts_are_shared() {
        let part: Arc<str> = "7".repeat(SHARED).into();
        let params = vec![Json::Null, Json::Serialized(part.clone())];
        let message = Message::notification("update", params);
        let (mut text, mut shared) = (String::new(), 0);
        message.write(&mut text, &mut |text, part| {
            shared += 1;
            text.push_str(part);
        });
        assert_eq!((shared, text), (1, message.to_json().to_string()));
    }
}
