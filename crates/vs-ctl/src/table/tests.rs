//! The texts are what the original printed for the same tables.

use super::*;

const UUID: &str = "a0f27ca9-2219-4a71-b499-a7bdc8ebd949";

fn table() -> Table {
    let mut table = Table::new(["name", "other_config", "_uuid", "flood_vlans"]);
    table.add_row(vec![
        Cell::Text("br0".into()),
        Cell::Text("{\"a b\"=\"x,<y>&\"}".into()),
        Cell::Text(UUID.into()),
        Cell::Text("[1, 2]".into()),
    ]);
    table.add_row(vec![
        Cell::Text("br1".into()),
        Cell::Text(format!("[{UUID}]")),
        Cell::Text(UUID.into()),
        Cell::Text(String::new()),
    ]);
    table
}

fn print(options: &[(StyleOption, &str)]) -> String {
    let mut style = Style::default();
    for (option, value) in options {
        style.set(*option, Some(value)).unwrap();
    }
    Formatter::new(style).format(&table())
}

#[test]
fn aligned_columns() {
    assert_eq!(
        print(&[]),
        "name other_config                           _uuid                                flood_vlans\n\
         ---- -------------------------------------- ------------------------------------ -----------\n\
         br0  {\"a b\"=\"x,<y>&\"}                       a0f27ca9-2219-4a71-b499-a7bdc8ebd949 [1, 2]\n\
         br1  [a0f27ca9-2219-4a71-b499-a7bdc8ebd949] a0f27ca9-2219-4a71-b499-a7bdc8ebd949 \n"
    );
    assert_eq!(
        print(&[(StyleOption::MaxColumnWidth, "10")]),
        "name other_config _uuid      flood_vlans\n\
         ---- ------------ ---------- -----------\n\
         br0  {\"a b\"=\"x,<y a0f27ca9-2 [1, 2]\n\
         br1  [a0f27ca9-22 a0f27ca9-2 \n"
    );
    assert_eq!(
        print(&[
            (StyleOption::MaxColumnWidth, "3"),
            (StyleOption::NoHeadings, "")
        ]),
        "br0 {\"a a0f [1,\nbr1 [a0 a0f \n"
    );
}

#[test]
fn lists() {
    assert_eq!(
        print(&[(StyleOption::Format, "list")]),
        "name                : br0\n\
         other_config        : {\"a b\"=\"x,<y>&\"}\n\
         _uuid               : a0f27ca9-2219-4a71-b499-a7bdc8ebd949\n\
         flood_vlans         : [1, 2]\n\
         \n\
         name                : br1\n\
         other_config        : [a0f27ca9-2219-4a71-b499-a7bdc8ebd949]\n\
         _uuid               : a0f27ca9-2219-4a71-b499-a7bdc8ebd949\n\
         flood_vlans         : \n"
    );
}

#[test]
fn html_links_identifiers() {
    let html = print(&[(StyleOption::Format, "html"), (StyleOption::NoHeadings, "")]);
    assert_eq!(
        html,
        "<table border=1>\n  <tr>\n    <td>br0</td>\n    \
         <td>{&quot;a b&quot;=&quot;x,&lt;y&gt;&amp;&quot;}</td>\n    \
         <td><a name=\"a0f27ca9-2219-4a71-b499-a7bdc8ebd949\">a0f27ca9</a></td>\n    \
         <td>[1, 2]</td>\n  </tr>\n  <tr>\n    <td>br1</td>\n    \
         <td>[<a href=\"#a0f27ca9-2219-4a71-b499-a7bdc8ebd949\">a0f27ca9</a>]</td>\n    \
         <td><a name=\"a0f27ca9-2219-4a71-b499-a7bdc8ebd949\">a0f27ca9</a></td>\n    \
         <td></td>\n  </tr>\n</table>\n"
    );
}

#[test]
fn csv_quotes_what_it_must() {
    assert_eq!(
        print(&[(StyleOption::Format, "csv")]),
        "name,other_config,_uuid,flood_vlans\n\
         br0,\"{\"\"a b\"\"=\"\"x,<y>&\"\"}\",a0f27ca9-2219-4a71-b499-a7bdc8ebd949,\"[1, 2]\"\n\
         br1,[a0f27ca9-2219-4a71-b499-a7bdc8ebd949],a0f27ca9-2219-4a71-b499-a7bdc8ebd949,\n"
    );
}

#[test]
fn json_tables() {
    let mut table = Table::new(["a"]);
    table.caption = Some("T table".into());
    table.add_row(vec![Cell::Json(Json::Array(vec!["set".into()]))]);
    table.add_row(vec![Cell::Text("x".into())]);
    let mut style = Style::default();
    style.set(StyleOption::Format, Some("json")).unwrap();
    let mut formatter = Formatter::new(style.clone());
    let line = "{\"caption\":\"T table\",\"data\":[[[\"set\"]],[\"x\"]],\"headings\":[\"a\"]}\n";
    assert_eq!(formatter.format(&table), line);
    assert_eq!(formatter.format(&table), line);
    style.pretty = true;
    assert_eq!(
        Formatter::new(style).format(&Table::new(["a"])),
        "{\n  \"data\": [],\n  \"headings\": [\n    \"a\"]}\n"
    );
}

#[test]
fn text_tables_are_set_apart() {
    let mut table = Table::new(["a"]);
    table.caption = Some("T table".into());
    table.timestamp = Some("now".into());
    let mut formatter = Formatter::new(Style::default());
    assert_eq!(formatter.format(&table), "now\nT table\na\n-\n");
    assert_eq!(formatter.format(&table), "\nnow\nT table\na\n-\n");
}

#[test]
fn unknown_formats_are_named() {
    let mut style = Style::default();
    assert_eq!(
        style.set(StyleOption::Format, Some("ta")),
        Err("unknown output format \"ta\"".to_owned())
    );
    assert_eq!(
        style.set(StyleOption::Data, Some("x")),
        Err("unknown data format \"x\"".to_owned())
    );
}
