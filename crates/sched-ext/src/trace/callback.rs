//! A callback while it runs: all that it does becomes lines.

use super::filter::Depth;
use super::words::{Words, error, own_queue};
use super::{Arguments, CHUNK, MOST_HELD, Tracer, arguments};
use crate::callbacks::Callback;
use crate::core::Answer;
use crate::cost;
use crate::kernel::Kernel;
use bpf::{
    Address, Btf, Called, Fault, Found, FunctionId, Holder, Kind, Machine, MapId, Outside, Part,
    Place, ProgramId, TypeId,
};
use schedsim::TaskId;
use std::collections::BTreeSet;

/// The most values of a map that are shown.
const MOST_VALUES: usize = 64;
/// Helpers that print: what they print is shown instead of the call.
const PRINTS: [u32; 2] = [6, 177];
/// Helpers that give nothing.
const GIVE_NOTHING: [u32; 4] = [93, 94, 132, 133];

/// Helpers that give an address.
const GIVE_POINTERS: [u32; 9] = [1, 35, 131, 153, 154, 156, 158, 195, 210];

/// What a call gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// Nothing, or nothing that is sure.
    Nothing,
    /// Yes or no.
    YesOrNo,
    /// A number of 32 bits with a sign.
    Signed,
    /// An address.
    Pointer,
    /// A number or an address.
    Number,
}

/// A call that is open; the first is the callback itself.
struct Open {
    /// Its line, until something comes between it and its result.
    pending: Option<String>,
    level: usize,
    is_shown: bool,
    gives: Gives,
    /// Where it says whether a CPU was idle.
    is_idle: Option<Address>,
}

/// A callback that runs.
pub struct Within<'a, 'k> {
    kernel: Kernel<'k>,
    tracer: &'a mut Tracer,
    callback: Callback,
    /// How its first line begins.
    begins: String,
    open: Vec<Open>,
    last_line: u32,
    /// The maps that it has used.
    used: BTreeSet<MapId>,
    /// Whether it has to do with a wanted task.
    is_wanted: bool,
    /// The text until that is known, and the lines for which there was no room.
    held: String,
    left_out: usize,
    /// The instructions of BPF that had been executed before.
    before: u64,
}

impl<'a, 'k> Within<'a, 'k> {
    pub fn new(
        kernel: Kernel<'k>,
        tracer: &'a mut Tracer,
        callback: Callback,
        begins: String,
    ) -> Within<'a, 'k> {
        let is_wanted = tracer.filter.tasks.is_empty();
        Within {
            kernel,
            tracer,
            callback,
            begins,
            open: Vec::new(),
            last_line: 0,
            used: BTreeSet::new(),
            is_wanted,
            held: String::new(),
            left_out: 0,
            before: 0,
        }
    }

    /// It is called.
    pub fn begin(&mut self, machine: &Machine, program: ProgramId, with: Arguments<'_>) {
        self.before = machine.executed();
        let values = with.values();
        values.iter().for_each(|&value| self.mention(machine, value));
        let (names, of, gives) = match self.callback {
            Callback::Op(op) => {
                let (names, has_result) = arguments::of_operation(op);
                let structure = arguments::structure_of(op);
                let structure =
                    structure.and_then(|name| machine.object().btf().find(name, Kind::Structure));
                let gives = if has_result { Gives::Signed } else { Gives::Nothing };
                (names, (None, structure), gives)
            }
            Callback::Timer => {
                let map = values.first().and_then(|&map| machine.map_at(map).ok());
                self.used.extend(map);
                let name = &machine.object().programs()[program.0 as usize].name;
                self.begins += &format!(" {name}");
                (arguments::OF_TIMER, (map, None), Gives::Nothing)
            }
        };
        let shown = self.listed(machine, names, values, of);
        let pending = Some(format!("{}({shown})", self.begins));
        self.open.push(Open { pending, level: 0, is_shown: true, gives, is_idle: None });
    }

    /// It has returned, or is at fault, of which the end of the scheduler tells.
    pub fn end(&mut self, machine: &Machine, answer: &Answer<u64>) {
        match answer {
            Ok(value) => self.close(machine, *value),
            Err(_) => self.say_pending(),
        }
        if self.tracer.filter.costs {
            let executed = machine.executed() - self.before;
            let called = self.kernel.core.called;
            let all = cost::of_callback(executed, called);
            let what = format!("about {all} instructions: {executed} of BPF, calls {called}");
            self.say(1, &what);
        }
        if let Some(named) = self.tracer.filter.clone().maps.as_ref() {
            self.show_maps(machine, named);
        }
        self.tracer.hand_on(CHUNK);
    }

    fn words<'w>(&'w self, machine: &'w Machine) -> Words<'w> {
        Words { core: self.kernel.core, machine, names: &self.tracer.names }
    }

    fn depth(&self) -> Depth {
        self.tracer.filter.depth
    }

    /// The arguments with their names, separated by commas.
    fn listed(
        &self,
        machine: &Machine,
        names: &str,
        values: &[u64],
        (map, structure): (Option<MapId>, Option<TypeId>),
    ) -> String {
        let words = self.words(machine);
        let shown = names.split_whitespace().zip(values);
        let shown: Vec<String> = shown
            .map(|(name, &value)| {
                if let ("args", Some(structure), 1..) = (name, structure, value) {
                    return format!("args={}", words.arguments(structure, value));
                }
                // The kernel calls both `flags`: here their names say of what they are.
                let plain = match name {
                    "kick_flags" | "pick_flags" => "flags",
                    name => name,
                };
                format!("{plain}={}", words.argument(name, value, map))
            })
            .collect();
        shown.join(", ")
    }

    /// How far inside a line stands: of a line of source, or of what that does.
    fn level(&self, is_source: bool) -> usize {
        let open = self.open.iter().filter(|open| open.is_shown).count();
        match self.depth() {
            Depth::Lines => 2 * open - usize::from(is_source),
            _ => open,
        }
    }

    /// Writes down a line, after those of the calls that it is within.
    fn say(&mut self, level: usize, what: &str) {
        self.say_pending();
        self.put(level, what);
    }

    fn say_pending(&mut self) {
        for place in 0..self.open.len() {
            if let Some(pending) = self.open[place].pending.take() {
                self.put(self.open[place].level, &pending);
            }
        }
    }

    fn put(&mut self, level: usize, what: &str) {
        let line = format!("{:1$}{what}\n", "", 2 * level);
        if self.is_wanted {
            self.tracer.text += &line;
            self.tracer.hand_on(CHUNK);
        } else if self.held.len() < MOST_HELD {
            self.held += &line;
        } else {
            self.left_out += 1;
        }
    }

    /// It has to do with what lies at this address: with a wanted task?
    fn mention(&mut self, machine: &Machine, value: u64) {
        if self.is_wanted || value >> 32 == 0 {
            return;
        }
        if let Some(task) = self.kernel.core.task_of(machine, value) {
            self.mention_task(machine, task);
        }
    }

    fn mention_task(&mut self, machine: &Machine, task: TaskId) {
        let name = self.words(machine).name(task);
        if !self.is_wanted && self.tracer.filter.is_wanted(task, &name) {
            self.is_wanted = true;
            self.tracer.text += &std::mem::take(&mut self.held);
            if self.left_out > 0 {
                self.tracer.text += &format!("  … {} lines are left out\n", self.left_out);
            }
        }
    }

    /// The last call that is open has given this.
    fn close(&mut self, machine: &Machine, value: u64) {
        let Some(last) = self.open.last() else { return };
        let mut result = match last.gives {
            Gives::Nothing => String::new(),
            Gives::YesOrNo => format!(" = {}", value & 0xff != 0),
            Gives::Signed => format!(" = {}", error((value as i32).into())),
            Gives::Pointer if value == 0 => " = NULL".to_string(),
            Gives::Pointer | Gives::Number => format!(" = {}", self.words(machine).value(value)),
        };
        if let Some(at) = last.is_idle {
            let is_idle = machine.read_u8(at).is_ok_and(|byte| byte != 0);
            result += &format!(", *is_idle={is_idle}");
        }
        self.mention(machine, value);
        let Some(mut last) = self.open.pop() else { return };
        let moved = self.kernel.core.moved.as_mut().map(std::mem::take).unwrap_or_default();
        for &(task, _) in &moved {
            self.mention_task(machine, task);
        }
        if !last.is_shown {
            return;
        }
        match last.pending.take() {
            Some(pending) => self.say(last.level, &(pending + &result)),
            None if result.is_empty() => {}
            None => self.put(last.level + 1, result.trim_start()),
        }
        if self.depth() < Depth::Calls {
            return;
        }
        for (task, queue) in moved {
            let task = self.words(machine).task(task);
            self.say(last.level + 1, &format!("{task} -> {}", own_queue(queue)));
        }
    }

    /// The maps that it has used, and these maps and variables.
    fn show_maps(&mut self, machine: &Machine, named: &[String]) {
        let maps = named.iter().filter_map(|name| machine.map(name));
        self.used.extend(maps);
        for map in std::mem::take(&mut self.used) {
            let Some(of) = machine.map_definition(map) else { continue };
            let values = machine.map_values(map);
            if values.is_empty() {
                self.say(1, &format!("map {}: no values", of.name));
            }
            for (holder, at) in values.iter().take(MOST_VALUES) {
                let words = self.words(machine);
                let bytes = machine.bytes(*at, of.value_size as usize).unwrap_or_default();
                let value = words.of_type(of.value, bytes);
                let line = format!("map {} = {value}", words.in_map(holder).unwrap_or_default());
                self.say(1, &line);
            }
            if let Some(more) = values.len().checked_sub(MOST_VALUES + 1) {
                self.say(1, &format!("map {}: {} values more", of.name, more + 1));
            }
        }
        for name in named {
            let global = machine.object().globals().iter().find(|global| global.name == *name);
            if let Some((global, bytes)) = global.zip(machine.variable(name)) {
                let value = self.words(machine).typed(global.kind, bytes);
                self.say(1, &format!("var {name} = {value}"));
            }
        }
    }

    /// What was written, part by part.
    fn written(
        &self,
        machine: &Machine,
        found: &Found,
        address: Address,
        size: usize,
    ) -> Vec<String> {
        let words = self.words(machine);
        let btf = machine.object().btf();
        let Some((holder, separator)) = words.holder(found) else { return Vec::new() };
        let is_task = self.kernel.core.task_of(machine, found.start.0).is_some();
        let kind = found.kind.or_else(|| match is_task {
            true => btf.find("task_struct", Kind::Structure),
            false => None,
        });
        let first = (address.0 - found.start.0) as u32;
        let Some(kind) = kind else {
            let value = words.of_type(None, machine.bytes(address, size).unwrap_or_default());
            let way = if first == 0 { String::new() } else { format!("+{first:#x}") };
            return vec![format!("{holder}{way} = {value}")];
        };
        let mut lines = Vec::new();
        let mut offset = first;
        while offset < first + size as u32 {
            let Part { way, kind, first } = btf.part_at(kind, offset);
            let whole = btf.size(kind).unwrap_or(0).max(1);
            let at = found.start.plus(first.into());
            let bytes = machine.bytes(at, whole as usize).unwrap_or_default();
            let way = if separator.is_empty() { &way } else { way.trim_start_matches('.') };
            lines.push(format!("{holder}{separator}{way} = {}", words.typed(kind, bytes)));
            offset = first + whole;
        }
        lines
    }

    /// Adds the maps among arguments to those that were used; gives the first.
    fn map_of(&mut self, machine: &Machine, values: &[u64]) -> Option<MapId> {
        let maps = values.iter().filter_map(|&value| machine.map_at(value).ok());
        let maps: Vec<MapId> = maps.collect();
        self.used.extend(&maps);
        maps.first().copied()
    }
}

/// What a function of the kernel gives, by its type in the object.
fn gives(btf: &Btf, name: &str) -> Gives {
    let Some(function) = btf.find(name, Kind::Function) else { return Gives::Number };
    let result = btf.resolve(btf.result(function));
    match btf.kind(result) {
        Kind::Void => Gives::Nothing,
        Kind::Pointer => Gives::Pointer,
        _ if btf.name(result) == "_Bool" => Gives::YesOrNo,
        _ if btf.is_signed(result) && btf.size(result) == Some(4) => Gives::Signed,
        _ => Gives::Number,
    }
}

/// The structure that a function of the kernel has its arguments in, if it does.
fn structure(btf: &Btf, called: Called, name: &str, names: &str) -> Option<TypeId> {
    let place = names.split_whitespace().position(|name| name == "args")?;
    let Called::Function(_) = called else { return None };
    let arguments = btf.arguments(btf.find(name, Kind::Function)?);
    let pointer = btf.resolve(arguments.get(place)?.1);
    let of = btf.resolve(btf.inner(pointer)?);
    (btf.kind(of) == Kind::Structure).then_some(of)
}

impl Outside for Within<'_, '_> {
    fn function(
        &mut self,
        machine: &mut Machine,
        function: FunctionId,
        arguments: [u64; 5],
    ) -> Result<u64, Fault> {
        self.kernel.function(machine, function, arguments)
    }

    fn helper(
        &mut self,
        machine: &mut Machine,
        helper: u32,
        arguments: [u64; 5],
    ) -> Result<u64, Fault> {
        self.kernel.helper(machine, helper, arguments)
    }

    fn print(&mut self, machine: &mut Machine, text: &str) {
        if self.depth() >= Depth::Calls {
            for line in text.lines() {
                self.say(self.level(false), &format!("bpf_printk: {line}"));
            }
        }
        self.kernel.print(machine, text);
    }

    fn step(&mut self, _: &Machine, at: Place) {
        if self.depth() < Depth::Lines {
            return;
        }
        let Some(number) = self.tracer.listing.number(at) else { return };
        if number == self.last_line {
            return;
        }
        self.last_line = number;
        let listing = std::sync::Arc::clone(&self.tracer.listing);
        if let Some(line) = listing.line(number) {
            let file = line.file.rsplit('/').next().unwrap_or_default();
            self.say(self.level(true), &format!("{file}:{}: {}", line.line, line.text));
        }
    }

    fn calls(&mut self, machine: &Machine, called: Called, arguments: [u64; 5]) {
        self.kernel.calls(machine, called, arguments);
        let object = machine.object();
        let (name, names, gives) = match called {
            Called::Function(function) => {
                let of = &object.functions()[function.0 as usize];
                let names = arguments::of_function(&of.name).unwrap_or_default();
                (of.name.clone(), names, gives(object.btf(), &of.name))
            }
            Called::Helper(number) => {
                let gives = match number {
                    number if GIVE_NOTHING.contains(&number) => Gives::Nothing,
                    number if GIVE_POINTERS.contains(&number) => Gives::Pointer,
                    _ => Gives::Number,
                };
                let name = bpf::helper_name(number).unwrap_or("a helper").to_string();
                (name, arguments::of_helper(number), gives)
            }
            Called::Own(place) => {
                let of = object.program_of(place);
                let name = of.map(|of| object.programs()[of.0 as usize].name.clone());
                (name.unwrap_or_default(), "", Gives::Nothing)
            }
        };
        let count = names.split_whitespace().count().min(arguments.len());
        let values = &arguments[..count];
        values.iter().for_each(|&value| self.mention(machine, value));
        let map = self.map_of(machine, values);
        let is_print = matches!(called, Called::Helper(number) if PRINTS.contains(&number));
        let is_shown = self.depth() >= Depth::Calls && !is_print;
        let is_idle = names.split_whitespace().position(|name| name == "is_idle");
        let is_idle = is_idle.map(|place| Address(arguments[place]));
        let pending = is_shown.then(|| match called {
            // The compiler may have changed what a function of the object takes and gives.
            Called::Own(_) => format!("{name}(…)"),
            _ => {
                let structure = structure(machine.object().btf(), called, &name, names);
                format!("{name}({})", self.listed(machine, names, values, (map, structure)))
            }
        });
        let level = self.level(false);
        self.open.push(Open { pending, level, is_shown, gives, is_idle });
    }

    fn returns(&mut self, machine: &Machine, value: u64) {
        self.close(machine, value);
    }

    fn stores(&mut self, machine: &Machine, address: Address, size: usize) {
        if machine.is_of_a_call(address) {
            return;
        }
        let Some(found) = machine.found(address) else { return };
        self.mention(machine, found.start.0);
        if let Holder::Value { map, .. } | Holder::Owned { map, .. } = found.holder {
            self.used.insert(map);
        }
        if let Holder::Owned { owner, .. } = found.holder {
            self.mention(machine, owner.0);
        }
        if self.depth() >= Depth::Writes {
            for line in self.written(machine, &found, address, size) {
                self.say(self.level(false), &line);
            }
        }
    }
}
