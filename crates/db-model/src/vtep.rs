//! The schema of hardware VTEPs.

/// The `hardware_vtep` schema, version 1.7.0, as JSON text.
pub const HARDWARE_VTEP_SCHEMA: &str = include_str!("../schema/vtep.ovsschema");

#[cfg(test)]
mod tests {
    use crate::DatabaseSchema;

    #[test]
    fn the_schema_is_whole() {
        let schema = DatabaseSchema::from_text(super::HARDWARE_VTEP_SCHEMA).expect("valid");
        assert_eq!(
            (&*schema.name, schema.version.as_str()),
            ("hardware_vtep", "1.7.0")
        );
        assert_eq!(schema.cksum, "353943336 11434");
        let columns: usize = schema.tables.iter().map(|t| t.own_columns().count()).sum();
        assert_eq!((schema.tables.len(), columns), (18, 93));
        assert!(
            schema
                .table("Global")
                .is_some_and(|t| t.is_root && t.max_rows == 1)
        );
        assert!(schema.table("Physical_Locator").is_some_and(|t| !t.is_root));
    }
}
