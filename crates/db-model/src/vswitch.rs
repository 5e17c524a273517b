//! The schema that the switch uses.

/// The `Open_vSwitch` schema, version 8.8.0, as JSON text: every table and column that the
/// switch and its tools know.
pub const OPEN_VSWITCH_SCHEMA: &str = include_str!("../schema/vswitch.ovsschema");

#[cfg(test)]
mod tests {
    use crate::DatabaseSchema;

    #[test]
    fn the_schema_is_whole() {
        let schema = DatabaseSchema::from_text(super::OPEN_VSWITCH_SCHEMA).expect("valid");
        assert_eq!(
            (&*schema.name, schema.version.as_str()),
            ("Open_vSwitch", "8.8.0")
        );
        assert_eq!(schema.cksum, "2823623553 27869");
        let columns: usize = schema.tables.iter().map(|t| t.own_columns().count()).sum();
        assert_eq!((schema.tables.len(), columns), (19, 190));
        assert!(
            schema
                .table("Open_vSwitch")
                .is_some_and(|t| t.is_root && t.max_rows == 1)
        );
        assert!(schema.table("Port").is_some_and(|t| !t.is_root));
    }
}
