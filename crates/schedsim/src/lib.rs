//! The model: tasks and workloads, a machine, scheduling policies, the engine, the trace it writes, metrics and checks on that trace.
//!
//! Pure: no clock, no thread, no file, no environment, no unordered map. The same seed gives the same trace on every machine.
#![forbid(unsafe_code)]
