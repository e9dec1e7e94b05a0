//! Opens a recording and recognises its format.

use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use zstd::stream::read::Decoder;

use super::error::{Error, MOST_UNPACKED, Place, Problem};
use super::foreign;
use super::perfetto::wire::is_perfetto;
use super::tracing_data::MAGIC;
use super::{Format, Progress};

/// The number of bytes that decide the format.
const SAMPLE: usize = 4096;

/// The number of bytes that a compressed file of any size may unpack to.
const SLACK: u64 = 64 << 20;

/// The number of bytes between two progress calls.
const PROGRESS_STEP: u64 = 1 << 20;

/// Called with the progress of reading.
pub(super) type OnProgress<'a> = Option<&'a dyn Fn(Progress)>;

/// An open recording.
pub(super) struct Input<'a> {
    pub compressed: bool,
    pub content: Content<'a>,
}

/// The format of a recording.
pub(super) enum Content<'a> {
    Text(Around, Box<dyn Read + 'a>),
    Json(Box<dyn Read + 'a>),
    Recording(Box<dyn Read + 'a>),
    /// Read in pieces.
    Pieces(Format, Source<'a>),
}

/// What the lines stand in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Around {
    Nothing,
    /// What atrace prints before them.
    Atrace,
    /// A page of systrace.
    Page,
}

impl<'a> Input<'a> {
    /// Opens the file and recognises its format by content.
    pub fn open(path: &Path, progress: OnProgress<'a>) -> Result<Self, Error> {
        Input::recognise(path, progress).map_err(|problem| Error::new(path, Place::File, problem))
    }

    fn recognise(path: &Path, progress: OnProgress<'a>) -> Result<Self, Problem> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(foreign::recognise_directory(path));
        }
        let most = largest_unpacked(&metadata);
        let mut file = Counted { file, progress, read: 0, total: metadata.len(), announced: 0 };
        let mut sample = begin(&mut file)?;
        let compressed = sample.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let mut reader: Box<dyn Read + 'a> = Box::new(io::Cursor::new(sample.clone()).chain(file));
        if compressed {
            reader = Box::new(Unpacked::new(Decoder::new(reader).map_err(zstd_problem)?, most));
            sample = begin(&mut reader)?;
            reader = Box::new(io::Cursor::new(sample.clone()).chain(reader));
        }
        match what_is(&sample) {
            What::Nothing => Err(Problem::Empty),
            What::Text(around) => Ok(Input { compressed, content: Content::Text(around, reader) }),
            What::Deflated(begin) => {
                io::copy(&mut reader.by_ref().take(begin), &mut io::sink())
                    .map_err(read_problem)?;
                let text = Unpacked::new(Inflated::new(reader), most);
                let text = Box::new(io::Cursor::new(b"TRACE:\n").chain(text));
                Ok(Input { compressed, content: Content::Text(Around::Atrace, text) })
            }
            What::Json => Ok(Input { compressed, content: Content::Json(reader) }),
            What::Recording => Ok(Input { compressed, content: Content::Recording(reader) }),
            What::Pieces(format) => {
                let source = Source { path: path.to_owned(), compressed, progress };
                Ok(Input { compressed, content: Content::Pieces(format, source) })
            }
            What::Other(name) => Err(Problem::NotATrace(name.to_owned())),
            What::Foreign(problem) => Err(problem),
        }
    }
}

/// A file that is read more than once, in pieces.
pub(super) struct Source<'a> {
    path: PathBuf,
    compressed: bool,
    progress: OnProgress<'a>,
}

impl<'a> Source<'a> {
    /// Opens the file at its beginning, with or without progress.
    pub fn open(&self, announced: Announced) -> Result<BufReader<Pieces<'a>>, Problem> {
        let file = File::open(&self.path)?;
        let progress = match announced {
            Announced::No => None,
            Announced::Yes => self.progress,
        };
        let metadata = file.metadata()?;
        let file = Counted { file, progress, read: 0, total: metadata.len(), announced: 0 };
        let pieces = if self.compressed {
            Pieces::Zstd(Rewinding::new(file, largest_unpacked(&metadata))?)
        } else {
            Pieces::Plain(file)
        };
        Ok(BufReader::with_capacity(1 << 18, pieces))
    }
}

/// Whether reading reports progress.
#[derive(Clone, Copy)]
pub(super) enum Announced {
    No,
    Yes,
}

/// A file that can be read in pieces, compressed or not.
pub(super) enum Pieces<'a> {
    Plain(Counted<'a>),
    Zstd(Rewinding<'a>),
}

impl Pieces<'_> {
    /// The length of the file if it is not compressed.
    pub fn plain_length(&self) -> Option<u64> {
        if let Pieces::Plain(file) = self { Some(file.total) } else { None }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Pieces::Plain(file) => file.read(buffer),
            Pieces::Zstd(stream) => stream.read(buffer),
        }
    }
}

impl Seek for Pieces<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Pieces::Plain(file) => file.seek(to),
            Pieces::Zstd(stream) => stream.seek(to),
        }
    }
}

/// The largest size to which a file may unpack, from its own size; unlimited for a pipe.
pub(crate) fn largest_unpacked(metadata: &Metadata) -> u64 {
    if metadata.is_file() {
        metadata.len().saturating_mul(MOST_UNPACKED).saturating_add(SLACK)
    } else {
        u64::MAX
    }
}

/// The output of a decoder, up to a number of bytes.
pub(crate) struct Unpacked<R> {
    decoder: R,
    left: u64,
}

impl<R> Unpacked<R> {
    /// Reads at most `most` bytes.
    pub(crate) fn new(decoder: R, most: u64) -> Self {
        Unpacked { decoder, left: most }
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(buffer)?;
        self.left = self.left.checked_sub(bytes(count)).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(count)
    }
}

/// A length as a number of bytes.
fn bytes(count: usize) -> u64 {
    count.try_into().unwrap_or(u64::MAX)
}

/// A decompressed file that can seek back: it decompresses again from the start. It needs neither
/// memory nor a temporary file.
pub(super) struct Rewinding<'a> {
    /// `None` only during its replacement.
    decoder: Option<Decoder<'static, BufReader<Counted<'a>>>>,
    position: u64,
    /// The largest size to which it may unpack.
    most: u64,
}

impl<'a> Rewinding<'a> {
    fn new(file: Counted<'a>, most: u64) -> io::Result<Self> {
        Ok(Rewinding { decoder: Some(Decoder::new(file)?), position: 0, most })
    }
}

impl Read for Rewinding<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(decoder) = &mut self.decoder else { return Ok(0) };
        let count = decoder.read(buffer)?;
        self.position = self.position.saturating_add(bytes(count));
        if self.position > self.most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(count) }
    }
}

impl Seek for Rewinding<'_> {
    /// Seeks from the start or the current position; a target past the end becomes the end.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
            SeekFrom::End(_) => None,
        };
        let target = target.ok_or(io::ErrorKind::Unsupported)?;
        if target < self.position
            && let Some(decoder) = self.decoder.take()
        {
            let mut file = decoder.finish().into_inner();
            file.seek(SeekFrom::Start(0))?;
            *self = Rewinding::new(file, self.most)?;
        }
        let ahead = target.saturating_sub(self.position);
        io::copy(&mut self.by_ref().take(ahead), &mut io::sink())?;
        Ok(self.position)
    }
}

/// The problem behind a failed read. Only the zstd decoder reports these kinds.
pub(crate) fn read_problem(error: io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Problem::Bomb,
        io::ErrorKind::UnexpectedEof => {
            Problem::Truncated("its zstd data stops inside a frame".to_owned())
        }
        io::ErrorKind::Other | io::ErrorKind::InvalidData => zstd_problem(error),
        io::ErrorKind::InvalidInput => Problem::Deflated(error.to_string()),
        _ => Problem::from(error),
    }
}

fn zstd_problem(error: io::Error) -> Problem {
    Problem::Zstd(error.to_string())
}

/// What was deflated behind `TRACE:`. Its errors have kinds of their own.
struct Inflated<R: Read>(flate2::read::ZlibDecoder<R>);

impl<R: Read> Inflated<R> {
    fn new(packed: R) -> Self {
        Inflated(flate2::read::ZlibDecoder::new(packed))
    }
}

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
                io::Error::new(io::ErrorKind::InvalidInput, error)
            }
            _ => error,
        })
    }
}

enum What {
    Nothing,
    Text(Around),
    /// From this byte on.
    Deflated(u64),
    Json,
    Foreign(Problem),
    Recording,
    Pieces(Format),
    Other(&'static str),
}

fn what_is(sample: &[u8]) -> What {
    let known: [(&[u8], &'static str); 5] = [
        (b"\x1f\x8b", "gzip data (decompress it first)"),
        (b"\xfd7zXZ", "xz data (decompress it first)"),
        (b"BZh", "bzip2 data (decompress it first)"),
        (b"\x28\xb5\x2f\xfd", "zstd data within zstd data (decompress it once)"),
        (b"PERFFILE", "a perf.data of before Linux 3.0"),
    ];
    match sample {
        [] => What::Nothing,
        _ if sample.starts_with(&recording::MAGIC) => What::Recording,
        _ if sample.starts_with(MAGIC) => What::Pieces(Format::TraceDat),
        _ if sample.starts_with(b"PERFILE2") || sample.starts_with(b"2ELIFREP") => {
            What::Pieces(Format::PerfData)
        }
        _ if let Some((_, name)) = known.iter().find(|(magic, _)| sample.starts_with(magic)) => {
            What::Other(name)
        }
        _ if is_perfetto(sample) => What::Pieces(Format::Perfetto),
        _ if let Some(problem) = foreign::recognise(sample) => What::Foreign(problem),
        _ if let Some(begin) = deflated(sample) => What::Deflated(begin),
        _ if sample.contains(&0) => What::Other("binary data"),
        _ if is_json(sample) => What::Json,
        _ => What::Text(around(sample)),
    }
}

/// Where the deflated part begins of what `atrace -z` prints.
fn deflated(sample: &[u8]) -> Option<u64> {
    let begin = trace_line(sample)?;
    let [first, second, ..] = *sample.get(begin..)? else { return None };
    let header = u16::from_be_bytes([first, second]);
    (first == 0x78 && header.checked_rem(31) == Some(0)).then_some(bytes(begin))
}

/// Where the line behind `TRACE:` begins, which atrace prints before the text.
fn trace_line(sample: &[u8]) -> Option<usize> {
    let line = b"TRACE:";
    let place = memchr::memmem::find(sample, line)?;
    let behind = sample.get(place.saturating_add(line.len())..)?;
    let end = behind.iter().position(|byte| *byte == b'\n')?;
    let is_line = place.checked_sub(1).is_none_or(|before| sample[before] == b'\n')
        && matches!(&behind[..end], b"" | b"\r");
    let begin = sample.len().saturating_sub(behind.len()).saturating_add(end);
    is_line.then(|| begin.saturating_add(1))
}

/// An object of texts, or a list of objects. A line of a trace may begin with a bracket, too.
fn is_json(sample: &[u8]) -> bool {
    let sample = sample.strip_prefix(b"\xef\xbb\xbf").unwrap_or(sample).trim_ascii_start();
    let second = sample.get(1..).unwrap_or_default().trim_ascii_start().first();
    match sample.first() {
        Some(b'{') => matches!(second, None | Some(b'"' | b'}')),
        Some(b'[') => matches!(second, Some(b'{' | b']')),
        _ => false,
    }
}

/// Whether a JSON file is a trace, as far as its beginning shows, and no workload of rt-app. Others
/// are not read here either.
pub(crate) fn is_trace_json(path: &Path) -> bool {
    let Ok(sample) = File::open(path).map_err(Problem::from).and_then(|mut file| begin(&mut file))
    else {
        return false;
    };
    let members: [&[u8]; 4] =
        [b"\"traceEvents\"", b"\"systemTraceEvents\"", b"\"tracebase\"", b"\"axisLabelX\""];
    sample.trim_ascii_start().starts_with(b"[")
        || members.iter().any(|member| memchr::memmem::find(&sample, member).is_some())
}

fn around(sample: &[u8]) -> Around {
    let start = sample.trim_ascii_start();
    let begins =
        |tag: &[u8]| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
    match start {
        _ if begins(b"<!doctype html") || begins(b"<html") => Around::Page,
        _ if trace_line(sample).is_some() => Around::Atrace,
        _ => Around::Nothing,
    }
}

/// The first bytes of `reader`, up to [`SAMPLE`].
fn begin(reader: &mut impl Read) -> Result<Vec<u8>, Problem> {
    let mut sample = Vec::with_capacity(SAMPLE);
    reader.take(bytes(SAMPLE)).read_to_end(&mut sample).map_err(read_problem)?;
    Ok(sample)
}

/// A file that counts the bytes read.
pub(super) struct Counted<'a> {
    file: File,
    progress: OnProgress<'a>,
    read: u64,
    total: u64,
    announced: u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read = self.read.saturating_add(bytes(count));
        if let Some(progress) = self.progress
            && (self.read.saturating_sub(self.announced) >= PROGRESS_STEP || count == 0)
        {
            self.announced = self.read;
            progress(Progress { bytes_read: self.read, bytes_total: self.total });
        }
        Ok(count)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.read = self.file.seek(to)?;
        self.announced = self.announced.min(self.read);
        Ok(self.read)
    }
}
