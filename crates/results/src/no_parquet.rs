//! A build without the feature `parquet`: reading and writing are errors that name it.

use crate::Row;

/// Fails: this build cannot write Parquet.
///
/// # Errors
/// Always; the message names the feature.
pub fn to_parquet(_: &[Row], _: &[(&str, &str)]) -> Result<Vec<u8>, String> {
    Err(refusal())
}

/// Fails: this build cannot read Parquet.
///
/// # Errors
/// Always; the message names the feature.
pub fn from_parquet(_: Vec<u8>) -> Result<Vec<Row>, String> {
    Err(refusal())
}

fn refusal() -> String {
    program::Error::not_built("parquet", "Parquet").to_string()
}
