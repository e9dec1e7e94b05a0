//! The section on papers: how their claims stand, surprises and advice. Then what the originals
//! missed, the worlds side by side, and decisions on the text.

use super::tables::{escape, open, prose};
use results::Row;
use results::findings::{Decision, Findings};
use results::standing::{Claim, Score, World, checks_of, scores, sentence};
use std::fmt::Write;

/// The part above the table of claims; empty if no claim was tested.
pub fn summary(rows: &[Row], findings: &Findings) -> String {
    let claims = Claim::all(rows);
    if claims.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section id=summary><h2>In short</h2>\n");
    html += &open("id=standing", "How claims stand, by paper");
    html += "<thead><tr><th scope=col>paper";
    let title = |title: &String| format!("<th scope=col class=number>{title}");
    html.extend(Score::titles().iter().map(title));
    html += "</thead><tbody>\n";
    for score in scores(&claims) {
        let _ = write!(html, "<tr><th scope=row>{}", escape(&score.paper));
        html.extend(score.numbers().iter().map(|count| format!("<td class=number>{count}")));
    }
    html += "</tbody></table></div>\n";
    let surprising: Vec<_> = findings.missed.iter().filter(|one| one.surprising).collect();
    if !surprising.is_empty() {
        html += "<h3>What surprised</h3>\n<ul>";
        for one in surprising {
            let _ = writeln!(html, "<li><b>{}.</b> {}", prose(&one.title), prose(&one.says));
        }
        html += "</ul>\n";
    }
    if !findings.advice.is_empty() {
        html += "<h3>Which ready queue and which policy for what</h3>\n";
        html += &open("id=advice", "Which ready queue and which policy for what");
        html += "<thead><tr><th scope=col>need<th scope=col>take<th \
                 scope=col>because</thead><tbody>\n";
        for one in &findings.advice {
            let _ = writeln!(
                html,
                "<tr><td class=words>{}<td class=words>{}<td class=words>{}",
                prose(&one.need),
                prose(&one.take),
                prose(&one.because)
            );
        }
        html += "</tbody></table></div>\n";
    }
    html + "</section>\n" + &missed(rows, findings) + &worlds(&claims)
}

fn missed(rows: &[Row], findings: &Findings) -> String {
    if findings.missed.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section id=missed><h2>What the originals missed</h2>\n");
    for one in &findings.missed {
        let _ = write!(
            html,
            "<h3>{}</h3>\n<p>{}</p>\n<ul class=note>",
            prose(&one.title),
            prose(&one.says)
        );
        html.extend(
            checks_of(rows, &one.claims)
                .into_iter()
                .map(|check| format!("<li>{}\n", escape(&sentence(check)))),
        );
        html += "</ul>\n";
    }
    html + "</section>\n"
}

/// The claims tested in several worlds, with a column for each world.
fn worlds(claims: &[Claim]) -> String {
    let several = |claim: &&Claim| {
        World::ALL.iter().filter(|world| !claim.in_world(**world).is_empty()).count() > 1
    };
    let several: Vec<&Claim> = claims.iter().filter(several).collect();
    if several.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section id=worlds><h2>Worlds side by side</h2>\n");
    html += &open("class=sortable", "Claims in several worlds");
    html += "<thead><tr><th scope=col>claim<th scope=col>says";
    html.extend(World::ALL.iter().map(|world| format!("<th scope=col>{world}")));
    html += "<th scope=col>agree</thead><tbody>\n";
    for claim in several {
        let _ = write!(
            html,
            "<tr><th scope=row>{}<td class=words>{}",
            escape(&claim.id),
            escape(claim.says())
        );
        for &world in World::ALL {
            let sentences: Vec<String> =
                claim.in_world(world).into_iter().map(|check| escape(&sentence(check))).collect();
            let _ = write!(html, "<td class=words>{}", sentences.join("<br>"));
        }
        let _ = writeln!(
            html,
            "<td class={}",
            if claim.is_disputed() { "worse>no" } else { "equivalent>yes" }
        );
    }
    html + "</tbody></table></div></section>\n"
}

/// Errors and gaps in the texts, and how they were resolved.
pub fn decisions(decisions: &[Decision]) -> String {
    if decisions.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<section id=decisions><h2>What the texts leave open, and how it was decided</h2>\n",
    );
    html += &open("class=sortable", "Decisions on the texts");
    html += "<thead><tr><th scope=col>id<th scope=col>decision<th \
             scope=col>touches</thead><tbody>\n";
    for Decision { id, says, claims } in decisions {
        let _ = writeln!(
            html,
            "<tr id=\"{0}\"><th scope=row>{0}<td class=words>{1}<td class=words>{2}",
            escape(id),
            prose(says),
            escape(&claims.join(", "))
        );
    }
    html + "</tbody></table></div></section>\n"
}

/// Links to the decisions that affect a claim.
pub fn links(claim: &str, decisions: &[Decision]) -> String {
    let touching = decisions
        .iter()
        .filter(|decision| decision.claims.iter().any(|one| results::is_of(claim, one)));
    touching
        .map(|decision| format!(" <small><a href=\"#{0}\">{0}</a></small>", escape(&decision.id)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_marked_and_claims_are_linked() {
        assert_eq!(prose("take `a<b` now"), "take <code>a&lt;b</code> now");
        let decision = Decision {
            id: "X-ERR1".to_string(),
            says: String::new(),
            claims: vec!["X-CLM1".to_string()],
        };
        assert!(links("X-CLM1-sim", std::slice::from_ref(&decision)).contains("#X-ERR1"));
        assert_eq!(links("X-CLM2", &[decision]), "");
    }
}
