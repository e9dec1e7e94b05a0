//! Numbers in sentences, with where they come from.
//!
//! `[4.2 %](100 * {A-CLM07-kernel.1})` in a finding or a reason shows as `4.2 %`. What stands in
//! parentheses computes it from the record: `{ID.N}` is the value of check N of a claim, in a
//! regime `{ID.NS}`. `[950 ms](given: …)` is a number that nothing here measures, with its source.
//! A test computes each number again (`cargo test -p schedlab-papers --lib citation`).

/// A number in a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Citation<'t> {
    /// The number as it is shown.
    pub shown: &'t str,
    /// How it is computed, or `given:` and its source.
    pub from: &'t str,
}

/// The sentence as it is shown, and its citations in order.
pub fn split(text: &str) -> (String, Vec<Citation<'_>>) {
    let (mut shown, mut citations, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, after)) = rest.split_once('[') {
        shown += before;
        rest = after;
        let cited = after
            .split_once("](")
            .filter(|(number, _)| !number.contains(['[', ']']))
            .and_then(|(number, tail)| Some((number, closed(tail)?)));
        let Some((number, (from, after))) = cited else {
            shown.push('[');
            continue;
        };
        shown += number;
        citations.push(Citation { shown: number, from });
        rest = after;
    }
    (shown + rest, citations)
}

/// The sentence as it is shown.
pub fn shown(text: &str) -> String {
    split(text).0
}

/// The text up to the parenthesis that closes it, and what follows.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut open = 1;
    for (place, letter) in text.char_indices() {
        match letter {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some((&text[..place], &text[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests;
