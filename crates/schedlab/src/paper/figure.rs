//! The data of figures, one CSV each: ours with its interval beside the printed one.

use super::queues::Measured;
use super::series::at;
use super::table::Figure;
use crate::Error;
use crate::atlas::mix::level_name;
use crate::atlas::rig::Cell;
use crate::atlas::steps;
use crate::statistics::Estimate;
use std::fmt::Write;

/// The name of the file and its contents.
pub fn csv(figure: &Figure, measured: &Measured) -> Result<(String, String), Error> {
    let name = format!("{}.csv", figure.id);
    let mut out = String::new();
    if !figure.orders.is_empty() {
        out.push_str("queue,slice,level\n");
        for load in &figure.orders {
            let cell = Cell {
                mix: load.mix.clone(),
                levels: load.levels,
                strides: load.strides,
                ..Cell::new(&load.queue, u32::from(load.levels))
            };
            for (slice, level) in steps::count(&cell).map_err(Error::Internal)?.order.iter().take(64).enumerate() {
                let _ = writeln!(out, "{},{slice},{}", load.queue, level_name(*level));
            }
        }
        return Ok((name, out));
    }
    out.push_str("series,x,value,ci_low,ci_high,printed\n");
    for id in &figure.series {
        let (table, column) = measured.paper.column(id).map_err(Error::Internal)?;
        let curves = measured.column(id).unwrap_or_default();
        for (x, printed) in measured.paper.printed.series(table, &column.name) {
            let values: Vec<f64> = curves.iter().filter_map(|curve| at(curve, x)).collect();
            let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let (mean, half_width) = Estimate::of(&values).map_or((None, None), |estimate| (Some(estimate.mean), estimate.half_width));
            let end = |sign: f64| number(mean.zip(half_width).map(|(mean, half_width)| mean + sign * half_width));
            let _ = writeln!(out, "\"{}\",{x},{},{},{},{printed}", column.name, number(mean), end(-1.0), end(1.0));
        }
    }
    Ok((name, out))
}
