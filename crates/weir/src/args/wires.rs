//! Commands that take packets from interfaces and captures only, by which a page or a screen shows
//! what passes here.

use super::RunOptions;
use crate::exit::usage;
use clap::{Arg, Command};
use weir_capture::records::is_record_address;
use weir_kafka::address::KafkaTopic;

/// The help of -i where neither flow records nor packets of a topic are taken.
const INTERFACE: &str = "The interface to capture from, or `any` for all; several at the same \
                         time, each with its own -i";

/// The option -i with its help for such a command.
pub(crate) fn interface(arg: Arg) -> Arg {
    arg.help(INTERFACE).long_help(INTERFACE)
}

/// The help of -i for detectors: those that come with Weir read packets, and not all can be spread
/// over partitions.
const INTERFACE_OF_DETECTORS: &str = "The interface to capture from, or `any` for all; several at \
                                      the same time, each with its own -i. For detectors that are \
                                      named, as far as they group by packet fields, also a topic \
                                      with the packets of another run (kafka://HOST:PORT/TOPIC), \
                                      with --group";

/// The option -i with its help for `weir watch`.
pub(crate) fn interface_of_detectors(arg: Arg) -> Arg {
    arg.help(INTERFACE).long_help(INTERFACE_OF_DETECTORS)
}

/// Leaves an option out of the help, since the command refuses it.
pub(crate) fn unoffered(arg: Arg) -> Arg {
    arg.hide(true)
}

/// Lets the help of `weir top` say only what it takes.
pub(crate) fn of_top(command: Command) -> Command {
    let command = command.mut_arg("interface", interface).mut_arg("capture_dir", capture_dir);
    command.mut_arg("group", unoffered).mut_arg("until", unoffered)
}

/// The option --capture-dir with its help where a screen lists packets.
pub(crate) fn capture_dir(arg: Arg) -> Arg {
    arg.help("Let the screen save packets of a row into files in this folder (`w` in their list)")
}

/// Refuses sources that such a command does not take, and says what takes them.
pub(crate) fn check(options: &RunOptions, command: &str) -> anyhow::Result<()> {
    let given = &options.live.interface;
    if let Some(topic) = given.iter().find(|name| KafkaTopic::is_meant(name)) {
        return Err(usage(format!(
            "-i {topic}: {command} takes packets from interfaces and captures; \
             `weir run QUERY -i {topic} --group NAME` takes them from a topic"
        )));
    }
    if let Some(address) = given.iter().find(|name| is_record_address(name)) {
        return Err(usage(format!(
            "-i {address}: {command} counts packets; `weir run QUERY -i {address}` receives flow \
             records for queries that begin with `flows`"
        )));
    }
    let partitions = &options.partitions;
    match partitions.group.is_some() || partitions.until != super::UntilWhen::Never {
        true => Err(usage(format!(
            "{command} takes no --group and no --until: they are for packets of a topic, by `weir \
             run QUERY -i kafka://HOST:PORT/TOPIC --group NAME`"
        ))),
        false => Ok(()),
    }
}
