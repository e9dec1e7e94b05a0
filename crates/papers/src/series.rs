//! Series of points, and the functions of claims on them.

use atlas::crossover::sign_change;

/// Points (x, y) in order of x.
pub type Series = Vec<(f64, f64)>;

/// The value at `x`.
pub fn at(series: &Series, x: f64) -> Option<f64> {
    series.iter().find(|point| point.0 == x).map(|point| point.1)
}

/// The points of both, for each x that both have.
pub fn common<'a>(
    a: &'a Series,
    b: &'a Series,
) -> impl Iterator<Item = (f64, f64, f64)> + Clone + 'a {
    a.iter().filter_map(|&(x, a)| Some((x, a, at(b, x)?)))
}

/// The mean of several series, at each x that any of them has.
pub fn mean<'a>(all: impl Iterator<Item = &'a Series>) -> Series {
    let mut sums: Vec<(f64, f64, f64)> = Vec::new();
    for &(x, y) in all.flatten() {
        match sums.binary_search_by(|sum| sum.0.total_cmp(&x)) {
            Ok(place) => sums[place] = (x, sums[place].1 + y, sums[place].2 + 1.0),
            Err(place) => sums.insert(place, (x, y, 1.0)),
        }
    }
    sums.into_iter().map(|(x, sum, count)| (x, sum / count)).collect()
}

/// The x where `a` crosses `b`; infinity if it never does.
pub fn cross(a: &Series, b: &Series) -> f64 {
    let difference: Vec<(f64, f64)> = common(a, b).map(|(x, a, b)| (x, a - b)).collect();
    sign_change(&difference).unwrap_or(f64::INFINITY)
}

/// How well a straight line through (a, b) fits: the square of their correlation.
pub fn r2(a: &Series, b: &Series) -> f64 {
    let line = Line::through(common(a, b).map(|(_, a, b)| (a, b)));
    line.r2
}

/// The slope of `b` as a function of `a`.
pub fn slope_against(a: &Series, b: &Series) -> f64 {
    Line::through(common(a, b).map(|(_, a, b)| (a, b))).slope
}

/// A number from one series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Summary {
    /// The largest value.
    Max,
    /// The smallest value.
    Min,
    /// The largest minus the smallest value.
    Span,
    /// The mean of the values.
    Mean,
    /// The value at the smallest x.
    First,
    /// The value at the largest x.
    Last,
    /// The largest step up from a point to the next; below 0 if all steps go down.
    LargestRise,
    /// The largest step down from a point to the next; below 0 if all steps go up.
    LargestFall,
    /// The x of the largest value.
    Argmax,
    /// The number of points.
    Count,
    /// The slope of a straight line through the points.
    Slope,
    /// How well a straight line fits: r².
    R2Linear,
    /// How well a line over the logarithm of x fits: r².
    R2Log,
    /// How well a line over 1 / x fits: r².
    R2Inverse,
}

impl Summary {
    /// The number; absent for a series without points.
    pub fn of(self, series: &Series) -> Option<f64> {
        let values = || series.iter().map(|point| point.1);
        let steps = || series.windows(2).map(|pair| pair[1].1 - pair[0].1);
        let (first, last) = (series.first()?, series.last()?);
        let (max, min) =
            (values().fold(f64::NEG_INFINITY, f64::max), values().fold(f64::INFINITY, f64::min));
        Some(match self {
            Summary::Max => max,
            Summary::Min => min,
            Summary::Span => max - min,
            Summary::Mean => values().sum::<f64>() / series.len() as f64,
            Summary::First => first.1,
            Summary::Last => last.1,
            Summary::LargestRise => steps().fold(f64::NEG_INFINITY, f64::max),
            Summary::LargestFall => -steps().fold(f64::INFINITY, f64::min),
            Summary::Argmax => {
                series
                    .iter()
                    .fold(first, |best, point| if point.1 > best.1 { point } else { best })
                    .0
            }
            Summary::Count => series.len() as f64,
            Summary::Slope => Line::through(series.iter().copied()).slope,
            Summary::R2Linear => Line::through(series.iter().copied()).r2,
            Summary::R2Log => Line::through(series.iter().map(|&(x, y)| (x.ln(), y))).r2,
            Summary::R2Inverse => Line::through(series.iter().map(|&(x, y)| (1.0 / x, y))).r2,
        })
    }
}

/// A least-squares line.
struct Line {
    slope: f64,
    /// The share of the variance of y that it explains; 1 if there is no variance.
    r2: f64,
}

impl Line {
    fn through(points: impl Iterator<Item = (f64, f64)> + Clone) -> Line {
        let count = points.clone().count() as f64;
        let (sum_x, sum_y) =
            points.clone().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
        let (mean_x, mean_y) = (sum_x / count, sum_y / count);
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for (x, y) in points {
            xx += (x - mean_x).powi(2);
            xy += (x - mean_x) * (y - mean_y);
            yy += (y - mean_y).powi(2);
        }
        let flat = |variance: f64, mean: f64| variance <= 1e-18 * mean * mean * count;
        if flat(yy, mean_y) {
            return Line { slope: 0.0, r2: 1.0 };
        }
        Line { slope: xy / xx, r2: if flat(xx, mean_x) { 0.0 } else { xy * xy / (xx * yy) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_recognised() {
        let line: Series = [(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)].into();
        assert!((Summary::Slope.of(&line).unwrap() - 2.0).abs() < 1e-12);
        assert!((Summary::R2Linear.of(&line).unwrap() - 1.0).abs() < 1e-12);
        assert!(Summary::R2Log.of(&line).unwrap() < 0.97);
        assert_eq!(Summary::LargestFall.of(&line), Some(-2.0));
        assert_eq!((Summary::Argmax.of(&line), Summary::Count.of(&line)), (Some(4.0), Some(3.0)));
        assert_eq!(
            mean([&line, &vec![(2.0, 7.0), (3.0, 1.0)]].into_iter()),
            [(1.0, 3.0), (2.0, 6.0), (3.0, 1.0), (4.0, 9.0)]
        );
        assert_eq!(Summary::Max.of(&Series::new()), None);
        assert_eq!(cross(&line, &vec![(1.0, 4.0), (2.0, 4.0)]), 1.5);
        assert_eq!(cross(&line, &vec![(1.0, 4.0), (2.0, 9.0)]), f64::INFINITY);
    }
}
