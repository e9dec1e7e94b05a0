//! Papers measured again: the verdict on each claim, and the figures.

use super::findings;
use super::tables::{escape, open};
use results::figure::{Figure, Order, Point};
use results::findings::Decision;
use results::{Row, Verdict, counted, quantity};
use std::fmt::Write;

/// A table of all claims, each linked to the decisions that affect it; empty if there are none.
pub fn claims(rows: &[Row], decisions: &[Decision]) -> String {
    let verdicts: Vec<&Row> =
        rows.iter().filter(|row| !row.text("claim").is_empty() && row.verdict.is_some()).collect();
    if verdicts.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section id=claims><h2>Claims</h2>\n<p class=legend>");
    let counts = Verdict::OF_CLAIMS.map(|verdict| {
        let count = verdicts.iter().filter(|row| row.verdict == Some(verdict)).count();
        format!("<span class={}>{verdict} {count}</span>", class(verdict))
    });
    let _ = write!(html, "{}: {}. ", counted(verdicts.len(), "check"), counts.join(", "));
    html += "A check is a comparison that a claim comes down to; it holds if the 95 % interval of \
             its margin does.</p>\n";
    html += &open("class=sortable id=verdicts", "Checks of claims");
    html += "<thead><tr>";
    for title in ["paper", "claim", "says", "check", "regime", "in print"] {
        let _ = write!(html, "<th scope=col>{title}");
    }
    html += "<th scope=col class=number>measured<th scope=col>expected<th scope=col>verdict<th \
             scope=col>because</thead><tbody>\n";
    verdicts.iter().for_each(|row| html += &check(row, decisions));
    html + "</tbody></table></div></section>\n"
}

fn check(row: &Row, decisions: &[Decision]) -> String {
    let text = |name: &str| escape(row.text(name));
    let verdict = row.verdict.unwrap_or(Verdict::Untestable);
    let measured = match (row.value, row.ci_low.zip(row.ci_high)) {
        (None, _) => "–".to_string(),
        (Some(value), None) => quantity(value, "1"),
        (Some(value), Some((low, high))) => format!(
            "{} <small>±{}</small>",
            quantity(value, "1"),
            quantity((high - low) / 2.0, "1")
        ),
    };
    let value = row.value.map_or(String::new(), |value| format!(" data-value={value}"));
    format!(
        "<tr><td>{}<th scope=row>{}{}<td class=words>{}<td \
         class=words><code>{}</code><td>{}<td>{}<td \
         class=number{value}>{measured}<td><code>{}</code><td class={}>{verdict}<td \
         class=words>{}\n",
        text("paper"),
        text("claim"),
        findings::links(row.text("claim"), decisions),
        text("says"),
        text("check"),
        text("regime"),
        text("in_print"),
        text("expected"),
        class(verdict),
        if verdict == Verdict::Holds {
            String::new()
        } else {
            escape(row.note.as_deref().unwrap_or_default())
        },
    )
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "better",
        Verdict::DoesNotHold => "worse",
        _ => "undecided",
    }
}

/// The figures, each with a place for its plot and with its data; empty if there are none.
pub fn figures(figures: &[Figure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<section id=figures><h2>Figures</h2>\n<p class=note>Shaded: 95 % interval over runs or \
         assignments. Circles of the same colour: the printed numbers, on the axis at the right. \
         Dashed grey: what the text says. A curve ends where there is nothing to measure: no \
         steady state, or no room for more tasks.</p>\n<div class=figures>\n",
    );
    figures.iter().enumerate().for_each(|(index, one)| html += &figure(index, one));
    html + "</div></section>\n"
}

fn figure(index: usize, figure: &Figure) -> String {
    let (id, title) = (escape(&figure.id), escape(&figure.title));
    let body = match &figure.diagram {
        // The program draws its diagrams itself.
        Some(svg) => format!("<div class=diagram>{svg}</div>"),
        None if !figure.orders.is_empty() => figure.orders.iter().map(order).collect(),
        None if figure.curves.iter().all(|curve| curve.points.is_empty()) => String::new(),
        None => format!("<div class=plot data-figure={index}></div>\n{}", data(figure)),
    };
    let missing: String = figure
        .missing
        .iter()
        .map(|why| format!("<p class=note>Missing: {}</p>", escape(why)))
        .collect();
    let bare = figure.without_interval.iter();
    let bare: String =
        bare.map(|why| format!("<p class=note>No interval: {}</p>", escape(why))).collect();
    let reproduce = escape(&figure.reproduce);
    format!(
        "<figure id=\"{id}\"><figcaption><b>{id}</b> {title}</figcaption>{body}{missing}{bare}<p \
         class=note>Reproduce: <code>{reproduce}</code></p></figure>\n"
    )
}

/// A row for each level: its letter in each slice in which it runs.
fn order(order: &Order) -> String {
    let mut levels: Vec<&String> = order.levels.iter().collect();
    levels.sort();
    levels.dedup();
    let row = |level: &String| {
        order.levels.iter().map(|one| if one == level { level } else { "·" }).collect::<String>()
            + "\n"
    };
    let rows: String = levels.into_iter().map(row).collect();
    let queue = escape(&order.queue);
    format!(
        "<p>{queue}, slice by slice</p><pre tabindex=0 role=region aria-label=\"order of \
         {queue}\">{}</pre>",
        escape(&rows)
    )
}

fn data(figure: &Figure) -> String {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| quantity(value, "1"));
    let mut html = format!(
        "<details><summary>Data</summary><a download=\"{}.csv\" href=\"data:text/csv,",
        escape(&figure.id)
    );
    html += &percent_encoded(&figure.csv());
    html += "\">as CSV</a>";
    html += &open("class=data", &format!("Data of {}", figure.id));
    html += "<thead><tr><th scope=col>curve<th scope=col>";
    html += &escape(&figure.x.label);
    for title in ["mean", "low", "high", "printed"] {
        html += &format!("<th scope=col class=number>{title}");
    }
    html += "</thead><tbody>\n";
    for curve in &figure.curves {
        for Point { x, value, low, high, printed } in &curve.points {
            let _ = write!(html, "<tr><td>{}<td>{x}", escape(&curve.name));
            [value, low, high, printed].into_iter().for_each(|one| {
                let _ = write!(html, "<td class=number>{}", number(*one));
            });
            html.push('\n');
        }
    }
    html + "</tbody></table></div></details>"
}

/// Encodes text for a URL.
fn percent_encoded(text: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b',' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_a_row_per_level() {
        let levels = ["A", "A", "B", "A"].map(String::from).to_vec();
        assert_eq!(
            order(&Order { queue: "ruler".to_string(), levels }),
            "<p>ruler, slice by slice</p><pre tabindex=0 role=region aria-label=\"order of \
             ruler\">AA·A\n··B·\n</pre>"
        );
    }

    #[test]
    fn data_in_a_link_keeps_its_characters() {
        assert_eq!(percent_encoded("a,1\n\"é\""), "a,1%0A%22%C3%A9%22");
    }
}
