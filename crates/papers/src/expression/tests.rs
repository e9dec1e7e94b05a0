use super::*;
use proptest::prelude::*;

struct Two(Series, Series);

impl Names for Two {
    fn series(&self, name: &str) -> Option<&Series> {
        match name {
            "a" => Some(&self.0),
            "b" => Some(&self.1),
            _ => None,
        }
    }

    fn printed(&self, name: &str) -> Option<&Series> {
        self.series(name)
    }
}

/// `a` and `b` have points at 10, 20, 30, 40 and 50 and printed numbers; nothing is known of
/// `free`.
fn known() -> KnownSeries {
    let axis = Some((1..=5).map(|x| f64::from(x) * 10.0).collect());
    let one = Known { axis, is_printed: true };
    KnownSeries::from([
        ("a".to_string(), one.clone()),
        ("b".to_string(), one),
        ("free".to_string(), Known::default()),
    ])
}

fn outcome(text: &str) -> Result<Outcome, String> {
    let line =
        |slope: f64| (1..=5).map(|x| (f64::from(x) * 10.0, 100.0 + slope * f64::from(x))).collect();
    Check::parse(text, &known())
        .map_err(|fault| fault.message)?
        .evaluate(&Two(line(0.0), line(-10.0)))
}

#[test]
fn the_worst_point_decides() {
    assert_eq!(outcome("a - b <= 30"), Ok(Outcome { value: 50.0, margin: -20.0 }));
    assert_eq!(outcome("(a - b)[10..30] <= 30"), Ok(Outcome { value: 30.0, margin: 0.0 }));
    assert_eq!(outcome("max(b) / a@10 + 2 * 3 >= -1"), Ok(Outcome { value: 6.9, margin: 7.9 }));
    assert!(outcome("a@10 < 100").unwrap().margin < 0.0);
    assert_eq!(outcome("r2_linear(b) >= 0.999").unwrap().value, 1.0);
    assert_eq!(outcome("shape(b) >= 1").unwrap().margin, 0.0);
    assert_eq!(outcome("-a + 2 * b@10 - 80 <= 0").unwrap().value, 0.0);
    assert_eq!(outcome("cross(b, 50 + 35) <= 15").unwrap(), Outcome { value: 15.0, margin: 0.0 });
    assert_eq!(outcome("join(a, b)@9 <= 50").unwrap().margin, 0.0);
    assert_eq!(Check::parse("a<0.5*2", &known()).unwrap().threshold(), "< 0.5 * 2");
}

#[test]
fn errors_are_found_with_their_column_before_evaluation() {
    for (text, at, complaint) in [
        ("a", 1..1, "expected <=, <, >= or >, found the end"),
        ("a <= ", 5..5, "expected a number, a series or a function, found the end"),
        (
            "max(aa) < 1",
            4..6,
            "there is no series named `aa`. Did you mean `a`? There are a, b, free.",
        ),
        ("1 + maxx(a) < 1", 4..8, "there is no function named `maxx`. Did you mean `max`?"),
        ("a ? 1", 2..3, "expected <=, <, >= or >, found `?`"),
        ("a < 1 2", 6..7, "unexpected `2`"),
        ("a@7 < 1", 2..3, "there is no point at 7; there are 10, 20, 30, 40, 50"),
        ("(a / b)@15 < 1", 8..10, "no point at 15"),
        ("a[11..19] < 1", 2..8, "there is no point from 11 to 19"),
        ("a[10..20] / b[30..40] < 1", 0..21, "no point in common"),
        ("a[10..20] < b[30..40]", 0..21, "no point in common"),
        ("r2(a[10..20], b[30..40]) < 1", 0..23, "no point in common"),
        ("join(a, b)@10 < 1", 11..13, "no point at 10; there are 0, 1, 2"),
        ("max(3) < 1", 4..5, "expected a series, found a number"),
        ("max(a)@10 < 1", 0..6, "expected a series, found a number"),
        ("max(a, b) < 1", 0..3, "`max` takes 1 argument, not 2"),
        ("cross(a) < 1", 0..5, "`cross` takes 2 arguments, not 1"),
        ("slope_of(a, 3) < 1", 12..13, "expected a series, found a number"),
        ("shape(free) < 1", 0..5, "`free` has none"),
        ("max() < 1", 4..5, "found `)`"),
        ("(a < 1", 3..4, "expected `)`, found `<`"),
        ("a[1.20] < 1", 6..7, "expected `..`, found `]`"),
        ("a@x < 1", 2..3, "expected a number, found `x`"),
        ("ä < 1", 0..2, "found `ä`"),
    ] {
        let fault = Check::parse(text, &known()).expect_err(text);
        assert!(fault.at == at && fault.message.contains(complaint), "{text}: {fault:?}");
    }
    assert!(Check::parse("free@7 < 1", &known()).is_ok(), "only a measurement shows its points");
    assert_eq!(
        Formula::parse("max(a)", &known()).unwrap_err().message,
        "expected a series, found a number"
    );
    assert!(
        Check::parse(&format!("{} < 1", "9".repeat(400)), &known())
            .unwrap_err()
            .message
            .contains("too large")
    );
}

/// On half of a thread's stack, so that every accepted expression fits easily.
#[test]
fn deep_and_long_expressions_are_refused_or_fit_the_stack() {
    let check = |text: String| -> Result<(), Fault> {
        let judged = || {
            let check = Check::parse(&text, &known())?;
            let (one, other): (Series, Series) = (vec![(10.0, 1.0)], vec![(10.0, 2.0)]);
            let _ = (
                check.evaluate(&Two(one, other)),
                check.to_string(),
                check.uses("b"),
                check.clone() == check,
            );
            Ok(())
        };
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .stack_size(1 << 20)
                .spawn_scoped(scope, judged)
                .unwrap()
                .join()
                .expect("no overflow")
        })
    };
    let nested = |open: &str, close: &str, deep: usize| {
        format!("{}a@10{} < 1", open.repeat(deep), close.repeat(deep))
    };
    for (open, close) in [("(", ")"), ("abs(", ")"), ("-", ""), ("1 - (", ")"), ("abs(-(", "))")] {
        let levels = open.matches(['(', '-']).count() - usize::from(open.starts_with("1 -"));
        assert_eq!(check(nested(open, close, 60 / levels)), Ok(()), "{open}");
        for deep in [65, 150, 100_000] {
            let fault = check(nested(open, close, deep)).expect_err(open);
            assert!(
                fault.message.contains("more than 64") || fault.message.contains("limit is 1000"),
                "{fault:?}"
            );
        }
    }
    for (more, fits) in [("+a", 63), ("[10..10]", 63), ("*a", 63), ("-1", 63)] {
        assert_eq!(check(format!("a{} < 1", more.repeat(fits))), Ok(()), "{more}");
        assert!(
            check(format!("a{} < 1", more.repeat(fits + 1)))
                .unwrap_err()
                .message
                .contains("more than 64 operations"),
            "{more}"
        );
    }
    assert_eq!(check(format!("max(join(a{})) < 1", ",a".repeat(490))), Ok(()));
    assert!(check(format!("max(join(a{})) < 1", ",a".repeat(500))).is_err());
}

/// Trees of both types whose points all exist.
fn number() -> BoxedStrategy<Number> {
    let leaf = prop_oneof![
        (0u32..1000).prop_map(|number| Number::Literal(f64::from(number) / 8.0)),
        Just(Number::At(Box::new(Points::Name("free".into())), 0.25)),
        Just(Number::Summary(Summary::Max, Box::new(Points::Name("a".into())))),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        prop_oneof![
            (inner.clone(), operator(), inner.clone()).prop_map(|(a, operator, b)| {
                Number::Arithmetic(Box::new(a), operator, Box::new(b))
            }),
            inner.clone().prop_map(|inner| Number::Absolute(Box::new(inner))),
            (points(Just(Number::Literal(2.0)).boxed()), inner).prop_map(|(points, level)| {
                Number::CrossesLevel(Box::new(points), Box::new(level))
            }),
        ]
    })
    .boxed()
}

fn points(number: BoxedStrategy<Number>) -> BoxedStrategy<Points> {
    let leaf =
        prop_oneof![Just("a"), Just("b"), Just("free")].prop_map(|name| Points::Name(name.into()));
    leaf.prop_recursive(4, 16, 2, move |inner| {
        let number = number.clone();
        prop_oneof![
            (inner.clone(), operator(), inner.clone()).prop_map(|(a, operator, b)| {
                Points::Arithmetic(Box::new(a), operator, Box::new(b))
            }),
            (inner.clone(), operator(), number.clone()).prop_map(|(a, operator, b)| {
                Points::ThenNumber(Box::new(a), operator, Box::new(b))
            }),
            (number, operator(), inner.clone()).prop_map(|(a, operator, b)| Points::NumberThen(
                Box::new(a),
                operator,
                Box::new(b)
            )),
            inner.clone().prop_map(|inner| Points::Absolute(Box::new(inner))),
            inner.clone().prop_map(|inner| Points::Coordinates(Box::new(inner))),
            inner.clone().prop_map(|inner| Points::Range(Box::new(inner), 0.0, 100.0)),
            inner.prop_map(|inner| Points::Join(vec![inner, Points::Name("free".into())])),
        ]
    })
    .boxed()
}

fn operator() -> impl Strategy<Value = Operator> {
    prop_oneof![
        Just(Operator::Add),
        Just(Operator::Subtract),
        Just(Operator::Multiply),
        Just(Operator::Divide)
    ]
}

proptest! {
    #[test]
    fn a_printed_expression_parses_to_the_same_tree(left in points(number()), right in number()) {
        let check = Check {
            left: Expression::Points(left),
            comparison: Comparison::AtMost,
            right: Expression::Number(right),
        };
        let text = check.to_string();
        prop_assume!(text.len() <= 1_000);
        let parsed = Check::parse(&text, &known()).map_err(|fault| format!("{text}: {fault:?}"));
        prop_assert_eq!(parsed, Ok(check));
    }

    #[test]
    fn no_text_makes_the_parser_panic(
        text in "([abfx0-9.@<>=+*/(),\\[\\] -]|max|free|join|cross|\\.\\.|\\PC){0,60}",
    ) {
        if let Ok(check) = Check::parse(&text, &known()) {
            prop_assert_eq!(Check::parse(&check.to_string(), &known()), Ok(check));
        }
    }
}
