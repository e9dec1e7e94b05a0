//! Papers measured again, as a user meets it: verdicts, figures, what is kept between runs, and
//! every bad input.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let dir =
            std::env::temp_dir().join(format!("schedlab-reproduce-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory for the test");
        Scratch(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a parent"))
            .and_then(|()| fs::write(&path, text))
            .expect("the file can be written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs `schedlab reproduce` with a cache of this test's own.
    fn reproduce(&self, arguments: &[&str]) -> Output {
        self.begin(arguments, "cache").wait_with_output().expect("the program ends")
    }

    /// Starts `schedlab reproduce` with this cache.
    fn begin(&self, arguments: &[&str], cache: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        command
            .current_dir(&self.0)
            .arg("reproduce")
            .args(arguments)
            .args(["--cache", &self.path(cache)])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    }

    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.reproduce(&[arguments, &["--format", "json"]].concat());
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        results["rows"].as_array().expect("rows").clone()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const GRIDS: &str = "workload = \"unix1990\"\n\n[[grid]]\nname = \"small\"\npolicies = \
                     [\"initial:rr\", \"take:rr\"]\n[grid.axes]\nload = [0.3, 0.95]\n";
const EXPERIMENTS: &str = "[[regime]]\nname = \"F\"\nsays = \"from empty\"\nfull = { seeds = 4, \
                           parameters = { tasks = 600, warm-up = 0, after = \"drain\" } }\nquick \
                           = { seeds = 3, parameters = { tasks = 300, warm-up = 0, after = \
                           \"drain\" } }\n\n[[figure]]\nid = \"X-FIG1\"\ntitle = \"NGRR\"\nx = { \
                           label = \"load\" }\nlet.ip = { grid = \"small\", policy = \
                           \"initial:rr\", metric = \"grr\", x = \"load\" }\nlet.tk = { grid = \
                           \"small\", policy = \"take:rr\", metric = \"grr\", x = \"load\" \
                           }\ncurve = [{ name = \"TK\", y = \"tk / ip\" }]\nmark = [{ y = 1.0, \
                           text = \"IP\" }]\n";
const CLAIMS: &str = "[[claim]]\nid = \"X-CLM1\"\nsays = \"Waiting makes tasks slower, and more \
                      so under load.\"\nlet.ip = { grid = \"small\", policy = \"initial:rr\", \
                      metric = \"grr\", x = \"load\" }\ncheck = [\"min(ip) > 1\", \"ip@0.95 > \
                      ip@0.3\", \"ip@0.95 < 1\"]\nknown.3 = { verdict = \"does-not-hold\", \
                      because = \"nobody is faster than alone\" }\n\n[[claim]]\nid = \
                      \"X-CLM2\"\nsays = \"It tastes well.\"\nskipped = \"there is no cook\"\n";

const FINDINGS: &str = "[[missed]]\ntitle = \"Tea\"\nsays = \"It was `never` made.\"\nclaims = \
                        [\"X-CLM1\"]\nsurprising = true\n\n[[advice]]\nneed = \"haste\"\ntake = \
                        \"`take:rr`\"\nbecause = \"nobody waits\"\n\n[[decision]]\nid = \
                        \"X-ERR1\"\nsays = \"read as written\"\nclaims = [\"X-CLM2\"]\n";

fn small_paper(scratch: &Scratch) {
    scratch.write("paper/grids.toml", GRIDS);
    scratch.write("paper/experiments.toml", EXPERIMENTS);
    scratch.write("paper/claims.toml", CLAIMS);
    scratch.write("paper/findings.toml", FINDINGS);
}

#[test]
fn a_folder_is_a_paper_and_a_second_run_measures_nothing() {
    let scratch = Scratch::new("folder");
    small_paper(&scratch);
    let first = scratch.reproduce(&["./paper", "-o", "out", "--format", "json"]);
    let message = String::from_utf8_lossy(&first.stderr).into_owned();
    assert!(first.status.success() && message.contains("12 measurements made in "), "{message}");
    let results: Value = serde_json::from_slice(&first.stdout).expect("JSON");
    let verdicts: Vec<&str> = results["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["holds", "holds", "does-not-hold", "untestable"]);
    let row = &results["rows"][2];
    let point = ["paper", "claim", "expected"].map(|name| row["point"][name].as_str());
    assert_eq!(point, [Some("paper"), Some("X-CLM1"), Some("< 1")]);
    assert_eq!(
        (row["runs"].as_u64(), row["note"].as_str()),
        (Some(3), Some("nobody is faster than alone"))
    );
    assert!(row["value"].as_f64().unwrap() > 1.0 && row["ci_low"].is_number());
    let figure = scratch.read("out/X-FIG1-F.csv");
    assert!(
        figure.starts_with("series,x,value,ci_low,ci_high,printed\n\"TK\",0.3,")
            && figure.lines().count() == 3,
        "{figure}"
    );
    let report = scratch.read("out/report.html");
    for part in [
        "id=claims",
        "id=figures",
        "X-FIG1-F",
        "schedlab reproduce ./paper --only X-FIG1",
        "there is no cook",
    ] {
        assert!(report.contains(part), "{part}");
    }
    let summary = [
        "id=summary",
        "<td class=number>2",
        "It was <code>never</code> made",
        "id=missed",
        "<code>take:rr</code>",
        "href=\"#X-ERR1\"",
    ];
    for part in summary {
        assert!(report.contains(part), "{part}");
    }
    let page = String::from_utf8(scratch.reproduce(&["./paper", "--format", "markdown"]).stdout)
        .expect("UTF-8");
    for part in [
        "| all | 2 | 0 | 1 | 0 | 1 | 1 |",
        "- **Tea.** It was `never` made. *(X-CLM1",
        "| haste | `take:rr` | nobody waits |",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }

    let second = scratch.reproduce(&["./paper", "--format", "json", "--resume"]);
    assert!(
        String::from_utf8_lossy(&second.stderr)
            .contains("0 measurements made in 0 min 0 s, 12 taken"),
        "{second:?}"
    );
    let again: Value = serde_json::from_slice(&second.stdout).expect("JSON");
    assert_eq!(results["rows"], again["rows"], "what was kept is what was measured");
    let one = scratch.rows(&["./paper", "--only", "X-CLM2"]);
    assert_eq!(one.len(), 1);
}

/// The numbers of measurements that a run made and took from the cache.
fn made_and_taken(output: &Output) -> [usize; 2] {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}");
    let line = message.lines().find(|line| line.contains(" measurements made in "));
    let line = line.unwrap_or_else(|| panic!("no summary in {message}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let before = |word: &str| {
        let place = words.iter().position(|own| *own == word).expect("the word");
        words[place - 1].parse().unwrap_or_else(|_| panic!("{line}"))
    };
    [before("measurements"), before("taken")]
}

/// Neither a second run on the same cache nor the end of the first by SIGKILL changes a byte.
#[test]
fn two_at_once_and_one_that_was_killed_give_the_same_bytes() {
    let scratch = Scratch::new("at-once");
    small_paper(&scratch);
    // Longer ones, so that both run when the first is seen.
    scratch.write("paper/experiments.toml", &EXPERIMENTS.replace("tasks = 300", "tasks = 4000"));
    let begin =
        |cache: &str, out: &str| scratch.begin(&["./paper", "-o", out, "--format", "csv"], cache);
    let end = |child: Child| child.wait_with_output().expect("the program ends");
    let alone = end(begin("cache-alone", "alone"));
    assert_eq!(made_and_taken(&alone), [12, 0]);

    let both = ["one", "two"].map(|out| begin("cache-both", out)).map(end);
    let mut counts = both.each_ref().map(made_and_taken);
    counts.sort();
    assert_eq!(counts, [[0, 12], [12, 0]], "each is measured once");

    let mut killed = begin("cache-killed", "killed");
    let lines = || {
        let text = fs::read_to_string(scratch.path("cache-killed/paper.jsonl"));
        text.map_or(0, |text| text.lines().count())
    };
    let start = Instant::now();
    while lines() < 3 {
        assert!(start.elapsed() < Duration::from_secs(300), "nothing is measured");
        std::thread::sleep(Duration::from_millis(1));
    }
    killed.kill().expect("it can be killed");
    assert!(!end(killed).status.success(), "it was killed before its end");
    let arguments = ["./paper", "-o", "resumed", "--format", "csv", "--resume"];
    let resumed = end(scratch.begin(&arguments, "cache-killed"));
    let [made, taken] = made_and_taken(&resumed);
    assert!(made + taken == 12 && made > 0 && taken > 1, "{made} made, {taken} taken");

    for (out, output) in [("one", &both[0]), ("two", &both[1]), ("resumed", &resumed)] {
        assert_eq!(output.stdout, alone.stdout, "{out}");
        for file in ["X-FIG1-F.csv", "figures.json", "findings.json", "measured.csv", "results.csv"]
        {
            assert_eq!(
                scratch.read(&format!("{out}/{file}")),
                scratch.read(&format!("alone/{file}")),
                "{out}/{file}"
            );
        }
    }
}

#[test]
fn a_verdict_that_is_not_the_one_on_record_fails() {
    let scratch = Scratch::new("record");
    small_paper(&scratch);
    scratch.write("paper/claims.toml", &CLAIMS.replace("known.3", "known.2"));
    let output = scratch.reproduce(&["./paper"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(
        message.contains("X-CLM1 (2, F): holds, on record: does-not-hold")
            && message.contains("X-CLM1 (3, F)"),
        "{message}"
    );
}

#[test]
fn bad_input_is_said_with_file_line_and_key() {
    let scratch = Scratch::new("bad");
    for (file, from, to, words) in [
        (
            "claims.toml",
            "min(ip)",
            "min(pi)",
            "paper/claims.toml:5: claim[0].check[0]: there is no series named `pi`. Did you mean \
             `ip`?",
        ),
        (
            "claims.toml",
            "check = [",
            "chekc = [",
            "paper/claims.toml:5: claim[0].chekc: there is no key named `chekc`. Did you mean \
             `check`?",
        ),
        (
            "claims.toml",
            "grid = \"small\"",
            "grid = \"smell\"",
            "paper/claims.toml:4: claim[0].let.ip.grid: there is no grid named `smell`.",
        ),
        (
            "claims.toml",
            "metric = \"grr\"",
            "metric = \"ggr\"",
            "paper/claims.toml:4: claim[0].let.ip.metric: there is no metric named `ggr`.",
        ),
        (
            "claims.toml",
            "skipped = \"there is no cook\"",
            "",
            "paper/claims.toml:9: claim[1].id: X-CLM2 needs either a threshold",
        ),
        (
            "claims.toml",
            "x = \"load\"",
            "x = \"loud\"",
            "paper/claims.toml:4: claim[0].let.ip.x: there is no axis named `loud`.",
        ),
        (
            "experiments.toml",
            "tk / ip",
            "tk / up",
            "paper/experiments.toml:13: figure[0].curve[0].y: there is no series named `up`.",
        ),
        (
            "experiments.toml",
            "tasks = 300",
            "tusks = 300",
            "paper/experiments.toml:5: regime[0].quick.parameters.tusks: there is no parameter \
             named `tusks`. Did you mean `tasks`?",
        ),
        (
            "findings.toml",
            "\"X-CLM2\"",
            "\"X-CLM3\"",
            "paper/findings.toml:15: decision[0].claims[0]: there is no claim named `X-CLM3`.",
        ),
        (
            "grids.toml",
            "take:rr",
            "takerr",
            "paper/grids.toml:5: grid[0].policies[1]: there is no policy named `takerr`.",
        ),
        (
            "grids.toml",
            "[0.3, 0.95]",
            "[]",
            "paper/grids.toml:7: grid[0].axes.load: an axis is a list of at least one value",
        ),
    ] {
        small_paper(&scratch);
        let text = scratch.read(&format!("paper/{file}"));
        assert!(text.contains(from), "{file} has no {from}");
        scratch.write(&format!("paper/{file}"), &text.replacen(from, to, 1));
        let output = scratch.reproduce(&["./paper"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{file}, {to}: {message}");
        assert!(message.contains(words), "{file}, {to}: {words:?} is not in {message:?}");
    }
    small_paper(&scratch);
    for (arguments, code, words) in [
        (&["porter-2012"][..], 2, "Did you mean `porter-2021`?"),
        (&["./nowhere"], 3, "./nowhere"),
        (
            &["./paper", "--only", "X-CLM7"],
            2,
            "there is no table, figure or claim named `X-CLM7`. Did you mean `X-CLM",
        ),
        (&["./paper", "--resume"], 2, "nothing to resume"),
        (&["./paper", "--quick", "--full"], 2, "--full"),
        (&["./paper", "--binary", "/nonexistent/schedlab"], 2, "cargo build --profile o1"),
    ] {
        let output = scratch.reproduce(arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(words), "{arguments:?}: {words:?} is not in {message:?}");
    }
    scratch.write("cache/paper.jsonl", "schedlab 0.0.1 (another)\n");
    let output = scratch.reproduce(&["./paper"]);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("written by schedlab 0.0.1 (another)"),
        "{output:?}"
    );
}

#[test]
fn a_folder_of_somebody_elses_is_data_until_it_is_trusted() {
    let scratch = Scratch::new("trust");
    small_paper(&scratch);
    let said = |arguments: &[&str]| {
        let output = scratch.reproduce(arguments);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let mark = scratch.path("mark");
    let evil = format!(
        "[[command]]\nname = \"evil\"\nrun = \"compare --on host --ensemble 1 -- touch {mark}\"\n\
         [[command]]\nname = \"write\"\nrun = \"compare hogs:2?work=1ms -o {mark}\"\n"
    );
    let claims = scratch.read("paper/experiments.toml");
    for (name, wanted) in
        [("evil", "evil: runs touch"), ("write", "write: gives -o, which may read or write files")]
    {
        let start = evil.find(&format!("[[command]]\nname = \"{name}\"")).unwrap();
        let end = evil[start + 2..].find("[[").map_or(evil.len(), |at| start + 2 + at);
        scratch.write("paper/experiments.toml", &format!("{claims}{}", &evil[start..end]));
        let (code, text) = said(&["./paper"]);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(wanted) && text.contains("Give --trust"), "{text}");
        assert!(!Path::new(&mark).exists());
    }
    scratch.write("paper/experiments.toml", &claims);
    // What is no regular file is neither read nor waited for.
    let odd = scratch.path("paper/odd.csv");
    std::os::unix::fs::symlink("/etc/hostname", &odd).unwrap();
    let (code, text) = said(&["./paper", "--trust"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("odd.csv") && text.contains("no links, pipes"), "{text}");
    std::fs::remove_file(&odd).unwrap();
    assert!(Command::new("mkfifo").arg(&odd).status().unwrap().success());
    let (code, text) = said(&["./paper"]);
    assert_eq!(code, Some(3), "{text}");
    std::fs::remove_file(&odd).unwrap();
    assert_eq!(said(&["./paper"]).0, Some(0));
}

#[test]
fn the_schedules_of_porter_are_reproduced_from_counts_alone() {
    let scratch = Scratch::new("porter");
    let rows = scratch.rows(&["porter-2021", "--only", "P-CHK01,P-CHK02,P-CLM17"]);
    let verdicts: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["point"]["claim"].as_str().unwrap(), row["verdict"].as_str().unwrap()))
        .collect();
    assert!(
        verdicts
            .iter()
            .all(|(claim, verdict)| *verdict
                == if *claim == "P-CLM17" { "untestable" } else { "holds" }),
        "{verdicts:?}"
    );
    assert_eq!(verdicts.len(), 9);
    assert!(
        rows.iter()
            .all(|row| row["point"]["paper"] == "porter-2021"
                && row["point"]["expected"].is_string())
    );
}

#[test]
fn figures_are_written_as_data() {
    let scratch = Scratch::new("figures");
    scratch.rows(&["--only", "P-FIG25,C-FIG2.1,C-FIG3.1", "-o", "out"]);
    let figure = scratch.read("out/P-FIG25.csv");
    let order = |queue: &str| -> String {
        let lines = figure.lines().filter_map(|line| line.strip_prefix(queue));
        lines.filter_map(|line| line.rsplit(',').next()).collect()
    };
    assert!(
        order("multilist2,").starts_with("AABAABCAABAABCDAABAABCAABAABCDE"),
        "{}",
        order("multilist2,")
    );
    // The paper prints A AB AC ABD AE ABCF; first in, first out among equals takes each group the
    // other way round.
    assert!(order("rbtree,").starts_with("ABACADBAEAFCBA"), "{}", order("rbtree,"));
    let shares = scratch.read("out/C-FIG2.1.csv");
    let most = shares.lines().skip(1).max_by(|a, b| value(a).total_cmp(&value(b))).expect("a line");
    assert!(
        most.starts_with("\"unix\",2.828") && (value(most) - 0.658).abs() < 0.01,
        "most bursts take 2 to 4 ms: {most}"
    );
    let report = scratch.read("out/report.html");
    assert!(
        report.contains("<svg") && report.contains(">A·A·A··A·A"),
        "a network, and a row per level"
    );
    assert!(Path::new(&scratch.path("out/results.csv")).exists());
    // Figures of an earlier command do not stay.
    let queue = ["queue", "--queues", "rr", "--count", "steps", "-o", &scratch.path("out")];
    assert!(
        Command::new(env!("CARGO_BIN_EXE_schedlab"))
            .args(queue)
            .output()
            .expect("the program starts")
            .status
            .success()
    );
    assert!(!Path::new(&scratch.path("out/figures.json")).exists());
}

/// The third field of a line.
fn value(line: &str) -> f64 {
    line.split(',').nth(2).and_then(|field| field.parse().ok()).unwrap_or(f64::NAN)
}

#[test]
fn numbers_come_from_commands_and_from_the_files_beside_them() {
    const EXPERIMENTS: &str = "[[command]]\nname = \"yields\"\nrun = \"compare yield:{x}?times=20 \
                               --policy cfs --baseline eevdf --cpus 1 --ensemble 1\"\nx = [2, \
                               4]\n\n[[command]]\nname = \"file\"\nrun = \"compare hog.toml \
                               --policy cfs --baseline cfs --ensemble 1\"\n\n[[figure]]\nid = \
                               \"X-FIG1\"\ntitle = \"time\"\nlet.cfs = { command = \"yields\", \
                               metric = \"makespan_ns\", policy = \"cfs\" }\ncurve = [{ name = \
                               \"CFS\", y = \"cfs\" }]\n";
    const CLAIMS: &str = "[[claim]]\nid = \"X-CLM1-sim\"\nsays = \"Twice the tasks take twice the \
                          time.\"\nlet.cfs = { command = \"yields\", metric = \"makespan_ns\", \
                          policy = \"cfs\" }\nlet.hog = { command = \"file\", metric = \
                          \"makespan_ns\" }\ncheck = [\"abs(cfs@4 / cfs@2 - 2) < 0.01\", \
                          \"max(hog) <= 5000000\"]\n\n[[claim]]\nid = \"X-CLM2-kernel\"\nsays = \
                          \"So it is in a kernel.\"\nlet.vm = { command = \"file\", metric = \
                          \"cpu_share\" }\ncheck = [\"max(vm) > 1\"]\n";
    const HOG: &str = "[[task]]\nname = \"hog\"\nphases = [{ run = \"5ms\" }]\n";
    let scratch = Scratch::new("commands");
    let write = |experiments: &str, claims: &str| {
        scratch.write("paper/experiments.toml", experiments);
        scratch.write("paper/claims.toml", claims);
        scratch.write("paper/hog.toml", HOG);
    };
    write(EXPERIMENTS, CLAIMS);
    let rows = scratch.rows(&["./paper", "-o", "out"]);
    let verdicts: Vec<&str> = rows.iter().map(|row| row["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["holds", "holds", "untestable"]);
    assert_eq!(
        (rows[0]["world"].as_str(), rows[0]["workload"].as_str()),
        (Some("sim"), Some("hog | yield:2?times=20"))
    );
    assert!(rows[2]["note"].as_str().unwrap().contains("has no cpu_share"), "{}", rows[2]);
    assert!(scratch.read("out/X-FIG1.csv").lines().count() == 3);
    assert_eq!(
        scratch.rows(&["./paper", "--only", "X-CLM1"]).len(),
        2,
        "a claim is named without the world it is put to"
    );
    let long = EXPERIMENTS.replace(
        "hog.toml --policy cfs --baseline cfs --ensemble 1\"",
        "hog.toml --policy cfs --baseline cfs --ensemble 1\"\nquick.skipped = \"it is a hog\"",
    );
    write(&long, CLAIMS);
    let told = |arguments: &[&str]| {
        let output = scratch.reproduce(arguments);
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let [rows, message] = told(&["./paper", "--only", "X-CLM2", "--format", "json"]);
    assert!(rows.contains("only --full measures it: it is a hog"), "{rows}");
    let full = "takes --full: schedlab reproduce ./paper --only X-CLM2-kernel --full\n";
    assert!(message.contains(full), "{message}");
    for measured in
        [["./paper", "--only", "X-CLM2", "--full"], ["./paper", "--only", "X-FIG1", "--quick"]]
    {
        let [_, message] = told(&measured);
        assert!(!message.contains("takes --full"), "{measured:?}: {message}");
    }
    for (experiments, claims, words) in [
        (
            EXPERIMENTS.replace("x = [2, 4]\n", ""),
            CLAIMS.to_string(),
            "paper/experiments.toml:3: command[0].run: it contains {x}; give its values, as in \
             `x = [ … ]`",
        ),
        (
            EXPERIMENTS.replace("compare hog", "export hog"),
            CLAIMS.to_string(),
            "command[1].run: must be a measuring command of schedlab",
        ),
        (
            EXPERIMENTS.to_string(),
            CLAIMS.replace("\"file\"", "\"fille\""),
            "paper/claims.toml:5: claim[0].let.hog.command: there is no command named `fille`. \
             Did you mean `file`?",
        ),
        (
            EXPERIMENTS.replace("--policy cfs --baseline eevdf", "--policy csf"),
            CLAIMS.to_string(),
            "there is no policy named `csf`",
        ),
    ] {
        write(&experiments, &claims);
        let output = scratch.reproduce(&["./paper"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(3) && message.contains(words),
            "{words:?}, {:?}: {message}",
            output.status
        );
    }
}

/// The committed numbers of the kernels that were built for the study of pslist are the program's:
/// the first two members of an ensemble give again, bit for bit, what stands in `ensembles.csv`.
/// Skipped by name where the kernel is not built, or where what the numbers depend on is another.
#[test]
fn the_committed_numbers_of_pslist_are_measured_again_to_the_last_bit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("papers/pslist/ensembles.csv")).expect("the numbers");
    let rows = results::from_csv(&text).expect("rows");
    let about = |row: &results::Row| {
        row.workload == "yield:2"
            && row.world.to_string() == "vm:pslist-6.1"
            && row.text("kernel_arguments") == "pslist"
            && row.metric == results::Metric::instructions_per_yield
    };
    let of = rows.iter().find(|row| about(row)).expect("the ensemble");
    let members = of.text("members").split(' ').map(|member| member.parse::<f64>());
    let committed = members.take(2).sum::<Result<f64, _>>().expect("its members") / 2.0;

    let command = "compare yield:2 --on vm --kernel pslist-6.1 --kernel-arg pslist --ensemble 2 \
                   --format json";
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(command.split_whitespace())
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(77) {
        return eprintln!("skipped: the numbers of pslist in a kernel: {said}");
    }
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let again = results::Results::from_json(&text).expect("results").rows;
    let again = again.iter().find(|row| about(row)).expect("a row of the command");
    for input in ["kernel_sha256", "qemu_sha256", "runner_sha256"] {
        let [before, now] = [of, again].map(|row| row.text(input).to_string());
        if before != now {
            return eprintln!(
                "skipped: the numbers of pslist in a kernel: {input} was {before} and is {now}"
            );
        }
    }
    assert_eq!(again.value.map(f64::to_bits), Some(committed.to_bits()), "{:?}", again.value);
}

/// The first member of an ensemble on record gives the same digits again, and one that is changed
/// on record is found. Skipped by name where guests cannot run, or are others.
#[test]
fn an_ensemble_on_record_is_measured_again_to_the_last_digit() {
    let scratch = Scratch::new("ensembles");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers/td-tp");
    for entry in fs::read_dir(folder).expect("the study") {
        let path = entry.expect("a file").path();
        if let (Some(name), Ok(text)) = (path.file_name(), fs::read_to_string(&path)) {
            scratch.write(&format!("td-tp/{}", name.to_string_lossy()), &text);
        }
    }
    let quick = || {
        let output = scratch.reproduce(&["./td-tp", "--trust", "--only", "T-CLM01-kernel"]);
        let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        (output.status.code(), said.concat())
    };
    let (code, said) = quick();
    if said.contains("untestable  ") {
        return eprintln!("skipped: an ensemble on record: {said}");
    }
    let same = "1 ensemble on record: the first member of each gave the same digits again";
    assert!(code == Some(0) && said.contains(same), "{code:?}: {said}");
    let text = scratch.read("td-tp/ensembles.csv");
    let at = text.find("two-threads:fifo").expect("the ensemble");
    let digit = at + text[at..].find("\"\"members\"\":\"\"").expect("its members") + 14;
    let other = if &text[digit..=digit] == "1" { "2" } else { "1" };
    let changed = format!("{}{other}{}", &text[..digit], &text[digit + 1..]);
    scratch.write("td-tp/ensembles.csv", &changed);
    let (code, said) = quick();
    let words = "not as on record:\n  td-tp: not the same again: switches of two-threads:fifo";
    assert!(code == Some(4) && said.contains(words), "{code:?}: {said}");
}
