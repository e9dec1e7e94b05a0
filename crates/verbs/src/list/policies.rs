//! The descriptions of policies as text, as JSON, and as a schema of their options.

use results::{Align, Table};
use schedsim::policy::{Catalog, Descriptor, Kind, OptionSpec, Preset};
use serde_json::{Map, Value, json};

/// For people.
pub fn text(catalog: &Catalog) -> String {
    let mut orders = Table::new([("order", Align::Left), ("", Align::Left)]);
    readyq::catalog::ENTRIES.iter().for_each(|entry| orders.row([entry.name, entry.summary]));
    format!(
        "A policy is an order under a topology, named topology:order as in take:multilist2, or a \
         scheduler.\nOptions follow a question mark, as in \
         take:multilist2?quantum=1ms&levels=4 (in quotes, for the shell).\n\n{}\n{}\n{}",
        table("topology", catalog.topologies()),
        orders,
        table("scheduler", catalog.schedulers()),
    )
}

fn table<'a>(heading: &str, descriptors: impl Iterator<Item = &'a Descriptor>) -> Table {
    let mut table = Table::new([(heading, Align::Left), ("", Align::Left)]);
    for descriptor in descriptors {
        table.row([descriptor.name, descriptor.summary]);
        for option in descriptor.options {
            table.row([
                format!("  ?{}=", option.name),
                format!("{}: {} [default: {}]", option.meaning, option.kind, option.preset),
            ]);
        }
    }
    table
}

/// The complete descriptions.
pub fn json(catalog: &Catalog) -> Value {
    let descriptor = |descriptor: &Descriptor| {
        let Descriptor { name, summary, source, structure, .. } = descriptor;
        let options: Vec<Value> = descriptor.options.iter().map(option).collect();
        json!({
            "name": name,
            "kind": if descriptor.is_topology() { "topology" } else { "scheduler" },
            "summary": summary, "source": source,
            "structure": structure, "options": options,
        })
    };
    let order = |entry: &readyq::catalog::Entry| json!({ "name": entry.name, "summary": entry.summary, "source": entry.source });
    json!({
        "policies": catalog.descriptors().iter().map(descriptor).collect::<Vec<_>>(),
        "orders": readyq::catalog::ENTRIES.iter().map(order).collect::<Vec<_>>(),
    })
}

fn option(option: &OptionSpec) -> Value {
    let OptionSpec { name, kind, preset, meaning, .. } = option;
    let (kind, mut range) = match kind {
        Kind::Duration { least, most } => {
            ("duration", json!({ "least": least.exact(), "most": most.exact() }))
        }
        Kind::Count { least, most, unit, words } => {
            ("count", json!({ "least": least, "most": most, "unit": unit, "words": words }))
        }
        Kind::Flag => ("flag", json!({})),
        Kind::Choice(words) => ("choice", json!({ "words": words })),
    };
    let of = json!({ "name": name, "type": kind, "meaning": meaning });
    let default = match preset {
        Preset::Value(value) => json!({ "default": value }),
        Preset::Unset(words) => json!({ "default": null, "unset": words }),
    };
    let members = [of, default]
        .into_iter()
        .chain([range.take()])
        .filter_map(|value| value.as_object().cloned())
        .flatten();
    Value::Object(members.collect())
}

/// A schema of an option object for each policy. JSON Schema cannot compare durations: their ranges
/// are in `least` and `most`.
pub fn schema(catalog: &Catalog) -> Value {
    let object = |descriptor: &Descriptor| {
        let properties: Map<String, Value> = descriptor
            .options
            .iter()
            .map(|option| (option.name.to_string(), property(option)))
            .collect();
        let title = descriptor.summary;
        (
            descriptor.name.to_string(),
            json!({
                "type": "object", "title": title, "properties": properties,
                "additionalProperties": false
            }),
        )
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Options of policies, by policy; written as NAME?key=value&key=value",
        "type": "object",
        "properties": catalog.descriptors().iter().map(object).collect::<Map<_, _>>(),
        "additionalProperties": false,
    })
}

fn property(option: &OptionSpec) -> Value {
    let mut property = match option.kind {
        Kind::Duration { least, most } => {
            json!({
                "type": "string",
                "pattern": r"^[0-9]+(\.[0-9]+)?(ns|us|µs|ms|s)$",
                "least": least.exact(), "most": most.exact()
            })
        }
        Kind::Count { least, most, words: [], .. } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Count { least, most, words, .. } => {
            json!({ "anyOf": [
                { "type": "integer", "minimum": least, "maximum": most }, { "enum": words }
            ] })
        }
        Kind::Flag => json!({ "enum": ["yes", "no"] }),
        Kind::Choice(words) => json!({ "enum": words }),
    };
    property["description"] = match option.preset {
        Preset::Value(_) => option.meaning.into(),
        Preset::Unset(words) => format!("{} (default: {words})", option.meaning).into(),
    };
    if let Preset::Value(value) = option.preset {
        property["default"] = if let Kind::Count { .. } = option.kind {
            value.parse::<u64>().map_or(value.into(), Value::from)
        } else {
            value.into()
        };
    }
    property
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::Nanos;

    /// Compares a file with the generated text; `UPDATE_SCHEMA=1` writes it.
    fn expect_file(path: &str, generated: &str) {
        let path = format!("{}/../../docs/{path}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(&path, generated).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == generated,
            "{path} does not match the policies' descriptions: UPDATE_SCHEMA=1 cargo test --lib"
        );
    }

    /// The table of the options of all policies, between its marks in `page`.
    fn with_options(page: &str, catalog: &Catalog) -> String {
        let (begin, end) = ("<!-- options -->\n", "<!-- end of options -->");
        let (front, rest) =
            page.split_once(begin).expect("the page has a mark where options begin");
        let (_, back) = rest.split_once(end).expect("the page has a mark where options end");
        let mut rows = String::from(
            "| policy | option | takes | default | meaning |\n|---|---|---|---|---|\n",
        );
        for descriptor in catalog.descriptors() {
            for (index, option) in descriptor.options.iter().enumerate() {
                let name = if index == 0 {
                    format!("[{0}]({0}.md)", descriptor.name.replace("mlfq-textbook", "mlfq"))
                } else {
                    String::new()
                };
                rows += &format!(
                    "| {name} | `{}` | {} | {} | {} |\n",
                    option.name, option.kind, option.preset, option.meaning
                );
            }
        }
        format!("{front}{begin}{rows}{end}{back}")
    }

    #[test]
    fn the_page_and_the_schema_match_the_policies_descriptions() {
        let catalog = Catalog::built_in();
        let schema = serde_json::to_string_pretty(&schema(&catalog)).unwrap() + "\n";
        expect_file("policies.schema.json", &schema);
        let page = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/policies/README.md"
        ))
        .unwrap();
        expect_file("policies/README.md", &with_options(&page, &catalog));
    }

    /// Whether a property accepts `value`.
    fn takes(property: &Value, value: &str) -> bool {
        let among = |words: &Value| {
            words.as_array().is_some_and(|words| words.iter().any(|word| word == value))
        };
        let within = |part: &Value| {
            let number = value.parse::<u64>().ok();
            number.is_some_and(|number| {
                part["minimum"].as_u64().unwrap() <= number
                    && number <= part["maximum"].as_u64().unwrap()
            })
        };
        let span = |key: &str| property[key].as_str().unwrap().parse::<Nanos>().unwrap();
        match (property["anyOf"].as_array(), property["type"].as_str()) {
            (Some(parts), _) => within(&parts[0]) || among(&parts[1]["enum"]),
            (None, Some("integer")) => within(property),
            (None, Some("string")) => value
                .parse::<Nanos>()
                .is_ok_and(|time| span("least") <= time && time <= span("most")),
            _ => among(&property["enum"]),
        }
    }

    #[test]
    fn the_schema_accepts_exactly_what_the_parser_accepts() {
        let catalog = Catalog::built_in();
        let schema = schema(&catalog);
        for descriptor in catalog.descriptors() {
            for option in descriptor.options {
                let property = &schema["properties"][descriptor.name]["properties"][option.name];
                let mut probes: Vec<String> = [
                    "", "x", "yes", "no", "0", "1", "1.5", "-1", "0ns", "1ns", "4ms", "head",
                    "level",
                ]
                .map(String::from)
                .into();
                match option.kind {
                    Kind::Duration { most, .. } => {
                        probes.extend([most.exact(), format!("{}ns", most.0 + 1)])
                    }
                    Kind::Count { least, most, words, .. } => {
                        probes.extend(
                            [least, most, most + 1, least.saturating_sub(1)]
                                .map(|count| count.to_string()),
                        );
                        probes.extend(words.iter().map(|word| word.to_string()));
                    }
                    Kind::Choice(words) => probes.extend(words.iter().map(|word| word.to_string())),
                    Kind::Flag => {}
                }
                for probe in probes {
                    let name = format!("{}?{}={probe}", descriptor.name, option.name);
                    assert_eq!(
                        takes(property, &probe),
                        option.parse(&probe).is_ok(),
                        "{name}: {property}"
                    );
                }
                if let Some(default) = property.get("default") {
                    assert!(
                        takes(
                            property,
                            &default.as_str().map_or_else(|| default.to_string(), String::from)
                        ),
                        "{property}"
                    );
                }
            }
        }
        // A property with another range must be detected.
        assert!(
            !takes(&json!({ "type": "integer", "minimum": 1, "maximum": 2 }), "3")
                && takes(&json!({ "enum": ["yes", "no"] }), "yes")
        );
    }

    #[test]
    fn the_list_has_every_policy_and_every_option() {
        let catalog = Catalog::built_in();
        let (text, json) = (text(&catalog), json(&catalog));
        for (descriptor, listed) in
            catalog.descriptors().iter().zip(json["policies"].as_array().unwrap())
        {
            assert!(text.contains(descriptor.summary) && listed["source"] == descriptor.source);
            assert_eq!(listed["options"].as_array().unwrap().len(), descriptor.options.len());
            assert!(
                descriptor
                    .options
                    .iter()
                    .all(|option| text.contains(&format!("?{}=", option.name)))
            );
        }
        assert_eq!(json["orders"].as_array().unwrap().len(), readyq::catalog::ENTRIES.len());
    }
}
