use super::*;
use crate::policy::{Kind, Make, OptionSpec, Preset, Rr, RrOptions};

fn error(text: &str) -> String {
    PolicySpec::parse(text).expect_err(text).to_string()
}

#[test]
fn every_name_is_a_policy_with_a_description() {
    let catalog = Catalog::built_in();
    let all = catalog.names();
    assert_eq!(all.len(), 3 * catalog::ENTRIES.len() + catalog.schedulers().count());
    assert_eq!(catalog.all().len(), all.len());
    for descriptor in catalog.descriptors() {
        let Descriptor { name, summary, source, options, structure, .. } = descriptor;
        assert!(summary.len() > 20 && source.len() > 5 && !summary.ends_with('.'), "{name}");
        assert!(structure.is_some() != descriptor.is_topology(), "{name}");
        assert!(structure.is_none_or(|structure| catalog::entry(structure).is_some()), "{name}");
        for (index, option) in options.iter().enumerate() {
            assert!(
                !options[..index].iter().any(|other| other.name == option.name),
                "{name}?{}",
                option.name
            );
            assert!(
                option.meaning.len() > 10 && !option.meaning.contains("default"),
                "{name}?{}",
                option.name
            );
            assert!(
                option.preset != Preset::Unset("not set"),
                "{name}?{} does not say its default",
                option.name
            );
        }
    }
}

/// Values that an option accepts (both ends of its range, and the default), and some that it does
/// not.
fn values(option: &OptionSpec) -> (Vec<String>, Vec<String>) {
    let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    let (mut good, bad) = match option.kind {
        Kind::Duration { least, most } => (
            vec![least.exact(), most.exact()],
            vec![format!("{}ns", least.0 - 1), format!("{}ns", most.0 + 1), "1".into()],
        ),
        Kind::Count { least, most, words: others, .. } => {
            let below = least.checked_sub(1).map_or("-1".to_string(), |below| below.to_string());
            (
                [words(others), vec![least.to_string(), most.to_string()]].concat(),
                vec![below, (most + 1).to_string(), "1.5".into()],
            )
        }
        Kind::Flag => (words(&["yes", "no"]), words(&["1", "true"])),
        Kind::Choice(choices) => (words(choices), words(&["other"])),
    };
    if let Preset::Value(value) = option.preset {
        good.push(value.to_string());
    }
    (good, [bad, words(&["", "x"])].concat())
}

#[test]
fn every_option_takes_its_range_and_its_default_and_nothing_beyond() {
    for descriptor in Catalog::built_in().descriptors() {
        let name = if descriptor.is_topology() {
            format!("{}:sorted-list?strides=linear&", descriptor.name)
        } else {
            format!("{}?", descriptor.name)
        };
        for option in descriptor.options {
            let name = if option.name == "strides" {
                format!("{}:rbtree?", descriptor.name)
            } else {
                name.clone()
            };
            let (good, bad) = values(option);
            for value in good {
                let text = format!("{name}{}={value}", option.name);
                let spec =
                    PolicySpec::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                assert_eq!(spec.to_string(), text);
                // The constructor reads it.
                spec.policy(3);
            }
            for value in bad {
                let message = error(&format!("{name}{}={value}", option.name));
                let expected = format!(
                    "the option {} of {} cannot be {value:?}: give {}",
                    option.name, descriptor.name, option.kind
                );
                assert_eq!(message, expected);
            }
        }
    }
}

#[test]
fn an_option_that_is_not_given_has_its_default() {
    let given = |descriptor: &Descriptor, of: &dyn Fn(&Given)| {
        let values = descriptor.presets();
        of(&Given { cpus: 2, order: None, values: &values });
    };
    given(&eevdf::DESCRIPTOR, &|given| {
        assert_eq!(eevdf::Options::from(given), eevdf::Options::default())
    });
    given(&cfs::DESCRIPTOR, &|given| {
        assert_eq!(cfs::Options::from(given), cfs::Options::default())
    });
    given(&o1::DESCRIPTOR, &|given| assert_eq!(o1::Options::from(given), o1::Options::default()));
    given(&pslist::DESCRIPTOR, &|given| {
        assert_eq!(pslist::Options::from(given), pslist::Options::default())
    });
    given(&rr::DESCRIPTOR, &|given| assert_eq!(rr::Options::from(given), rr::Options::default()));
    given(&mlfq::windows::DESCRIPTOR, &|given| {
        assert_eq!(mlfq::windows::Windows::from(given), mlfq::windows::Windows::default())
    });
    given(&mlfq::textbook::DESCRIPTOR, &|given| {
        assert_eq!(mlfq::textbook::Book::from(given), mlfq::textbook::Book::default())
    });
    given(&proportional::stride::DESCRIPTOR, &|given| {
        assert_eq!(proportional::Options::from(given), proportional::Options::default())
    });
    given(&proportional::lottery::DESCRIPTOR, &|given| {
        assert_eq!(proportional::Options::from(given), proportional::Options::default())
    });
    given(&deadline::DEADLINE, &|given| {
        assert_eq!(deadline::Options::deadline(given), deadline::Options::DEADLINE)
    });
    given(&deadline::RATE_MONOTONIC, &|given| {
        assert_eq!(deadline::Options::rate_monotonic(given), deadline::Options::RATE_MONOTONIC)
    });
}

#[test]
fn an_unreadable_setting_is_refused_with_the_accepted_forms() {
    assert!(
        error("take").contains("no policy named")
            && error("eevdf:rr").contains("no policy named")
            && error("").contains("no policy named")
    );
    assert_eq!(
        error("fifo?quantum=1ms"),
        "the policy fifo has no option \"quantum\": give throttle"
    );
    assert_eq!(
        error("take:rr?search=2").split(':').next(),
        Some("the policy take has no option \"search\"")
    );
    assert_eq!(
        error("eevdf?slice=1ms&slice=2ms"),
        "the option slice of eevdf is given twice: give it once"
    );
    assert!(error("take:rr?quantum").contains("cannot be \"\": give a duration"));
    assert!(error("take:rr?").contains("has no option \"\""));
    assert!(
        error("take:multilist2?levels=9").contains("at most 8 for multilist2"),
        "{}",
        error("take:multilist2?levels=9")
    );
    assert_eq!(
        error("take:rr/quantum=1ms/ties=lowest"),
        "options stand behind a question mark: write `take:rr?quantum=1ms&ties=lowest`, not \
         `take:rr/quantum=1ms/ties=lowest`"
    );
}

#[test]
fn a_policy_of_another_crate_joins_the_catalog_and_cannot_take_a_name() {
    const OPTIONS: &[OptionSpec] = &[OptionSpec::duration("quantum", "how long").by_default("1ms")];
    let mine = |name| Descriptor {
        name,
        summary: "round robin with short quanta",
        source: "a test",
        options: OPTIONS,
        structure: None,
        scheduler: &Make(|given| {
            Rr::new(given.cpus(), RrOptions { quantum: given.duration("quantum"), throttle: None })
        }),
    };
    let catalog = Catalog::built_in().with(&[mine("brisk")]).unwrap();
    assert_eq!(catalog.names().last().map(String::as_str), Some("brisk"));
    assert_eq!(catalog.parse("brisk?quantum=2ms").unwrap().structure(), None);
    assert_eq!(catalog.all().len(), catalog.names().len());
    for (wrong, why) in [
        ("eevdf", "already"),
        ("take", "already"),
        ("kernel", "already"),
        ("Brisk", "cannot name"),
        ("a:b", "cannot name"),
        ("", "cannot name"),
    ] {
        assert!(Catalog::built_in().with(&[mine(wrong)]).unwrap_err().contains(why), "{wrong}");
    }
}

#[test]
#[should_panic(expected = "the default of quantum is \"1\"")]
fn a_default_that_is_none_is_found_when_the_catalog_is_made() {
    const WRONG: &[OptionSpec] =
        &[OptionSpec { preset: Preset::Value("1"), ..OptionSpec::duration("quantum", "how long") }];
    let wrong = Descriptor { name: "wrong", options: WRONG, ..rr::DESCRIPTOR };
    let _ = Catalog::built_in().with(&[wrong]);
}

#[test]
#[should_panic(expected = "lists no duration `quantum`")]
fn an_option_that_is_read_and_not_listed_is_found_when_the_catalog_is_made() {
    let _ =
        Catalog::built_in().with(&[Descriptor { name: "wrong", options: &[], ..rr::DESCRIPTOR }]);
}

#[test]
fn an_option_under_its_former_name_is_an_error_that_names_the_present_one() {
    let error = PolicySpec::parse("take:rr?raid=near").unwrap_err().to_string();
    assert_eq!(error, "the option raid of take is called steal now: give steal");
    assert!(PolicySpec::parse("take:rr?steal=near").is_ok());
}
