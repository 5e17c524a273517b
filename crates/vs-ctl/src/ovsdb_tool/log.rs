//! `show-log`: what is in a database's log.

use std::collections::HashMap;

use base::WallTime;
use db_engine::log_file::Word;
use db_engine::{read_record, store};
use db_model::{DatabaseSchema, Datum, SizeCheck, Uuid};
use json::{Json, Object};

use super::Call;
use crate::{Env, Exit};

/// What is known of rows as the log goes on: their names.
pub(super) type Names = HashMap<(usize, Uuid), String>;

pub(super) fn show(env: &mut Env<'_>, call: &Call<'_>) -> Result<Exit, String> {
    let (path, shown) = call.db(0);
    let kind = store::identify(&path, &shown).map_err(|error| error.to_string())?;
    if kind == Word::Clustered {
        return super::cluster_log::show(env, call, &path, &shown);
    }
    let mut reader = store::records(&path, &shown).map_err(|error| error.to_string())?;
    let mut schema: Option<DatabaseSchema> = None;
    let mut names = Names::new();
    let mut number = 0;
    loop {
        let json = match reader.next_record() {
            Ok(Some(json)) => json,
            Ok(None) => return Ok(Exit::SUCCESS),
            Err(error) => return Err(error.to_string()),
        };
        env.print(format!("record {number}:"));
        number += 1;
        match &schema {
            None => {
                let parsed = DatabaseSchema::from_json(&json).map_err(|e| e.to_string())?;
                env.print(format!(
                    " \"{}\" schema, version=\"{}\", cksum=\"{}\"\n",
                    parsed.name, parsed.version, parsed.cksum
                ));
                schema = Some(parsed);
                env.print("\n");
            }
            Some(schema) => {
                let text = describe_record(&json, schema, &mut names, call.settings.more);
                env.print(text.map_err(|error| error.to_string())?);
                env.print("\n");
            }
        }
    }
}

/// Date, comment and, if `more` says so, rows of a record.
pub(super) fn describe_record(
    json: &Json,
    schema: &DatabaseSchema,
    names: &mut Names,
    more: u32,
) -> db_model::Result<String> {
    let mut rows = String::new();
    let record = read_record(schema, json, |record, table, uuid, columns| {
        let is_difference = record.is_difference;
        rows += &describe_row(schema, table, uuid, columns, is_difference, names, more);
        Ok(())
    })?;
    let mut text = String::new();
    if let Some(date) = record.date {
        text += &format!(" {}", date_text(date));
    }
    if let Some(comment) = record.comment {
        text += &format!(" \"{comment}\"");
    }
    if more > 0 && !rows.is_empty() {
        text.push('\n');
        text += &rows;
    }
    Ok(text)
}

fn describe_row(
    schema: &DatabaseSchema,
    table: usize,
    uuid: Uuid,
    columns: Option<&Object>,
    is_difference: bool,
    names: &mut Names,
    more: u32,
) -> String {
    let table_schema = &schema.tables[table];
    let short: String = uuid.to_string().chars().take(8).collect();
    let known = names.contains_key(&(table, uuid));
    if let Some(name) = columns.and_then(|c| c.get("name")).and_then(Json::as_str) {
        names.insert((table, uuid), format!("\"{name}\""));
    }
    let name = names
        .entry((table, uuid))
        .or_insert_with(|| short.clone())
        .clone();
    let mut text = format!("  table {}", table_schema.name);
    if known {
        let what = if is_difference { " diff" } else { "" };
        text += &format!(" row {name} ({short}){what}:\n");
    } else if name == short {
        text += &format!(" insert row {short}:\n");
    } else {
        text += &format!(" insert row {name} ({short}):\n");
    }
    let Some(columns) = columns else {
        names.remove(&(table, uuid));
        return text + "    delete row\n";
    };
    if more < 2 {
        return text;
    }
    for (column, value) in columns.iter() {
        let shown = table_schema
            .column(column)
            .map(|c| &c.column_type)
            .map(|t| {
                Datum::from_json_sized(value, t, None, SizeCheck::Any).map_or_else(
                    |error| error.to_string(),
                    |datum| db_model::text::format_datum(&datum, t),
                )
            });
        let shown = shown.unwrap_or_else(|| value.to_string());
        text += &format!("    {column}={shown}\n");
    }
    text
}

/// A date in UTC: `2026-11-30 21:39:56.881`.
pub(crate) fn date_text(date: WallTime) -> String {
    let (days, millis) = (date.0.div_euclid(86_400_000), date.0.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let seconds = millis / 1000;
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:03}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        millis % 1000
    )
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    // Count from 0000-03-01, so that a leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(DAYS_IN_400_YEARS);
    let day_of_era = shifted.rem_euclid(DAYS_IN_400_YEARS);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_printed() {
        for (millis, text) in [
            (0, "1970-01-01 00:00:00.000"),
            (1_796_071_714_370, "2026-11-30 20:48:34.370"),
            (951_782_400_000, "2000-02-29 00:00:00.000"),
            (-1, "1969-12-31 23:59:59.999"),
        ] {
            assert_eq!(date_text(WallTime(millis)), text);
        }
    }
}
