//! Reads an event: a flat object of integers and one word.

#[derive(Default)]
pub struct Event {
    pub op: String,
    /// In nanoseconds.
    pub at: u64,
    pub task: i64,
    pub weight: i64,
    pub vruntime: i64,
    pub lag: i64,
}

impl Event {
    pub fn read(line: &str) -> Result<Self, String> {
        let members = line
            .trim()
            .strip_prefix('{')
            .and_then(|line| line.strip_suffix('}'))
            .ok_or("an event is an object")?;
        let mut event = Self::default();
        for member in members.split(',') {
            let (name, value) = member.split_once(':').ok_or("a member has a name and a value")?;
            let (name, value) = (name.trim().trim_matches('"'), value.trim());
            let number = || value.parse::<i64>().map_err(|_| format!("{name} is not an integer"));
            match name {
                "op" => event.op = value.trim_matches('"').to_string(),
                "at" => {
                    event.at = u64::try_from(number()?)
                        .ok()
                        .filter(|&at| at < 1 << 52)
                        .ok_or("the time is out of range: 0 to 2^52 ns")?
                }
                "task" => event.task = number()?,
                "weight" => event.weight = number()?,
                "vruntime" => event.vruntime = number()?,
                "lag" => event.lag = number()?,
                "tick" | "slice" => drop(number()?),
                _ => return Err("an event has an unknown member".into()),
            }
        }
        if event.op.chars().any(|letter| !letter.is_ascii_lowercase()) {
            return Err("op is not a word".into());
        }
        Ok(event)
    }
}
