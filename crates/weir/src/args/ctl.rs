//! The options of `weir ctl`.

use super::SiteArgs;
use super::values::{duration, format, param};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use weir_sink::Format;

/// A question to a run, and the socket for it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CtlArgs {
    /// The socket that the run listens on [default: $WEIR_SOCKET, or /run/weir.sock]
    #[arg(short = 'S', long, value_name = "SOCKET", global = true)]
    pub(crate) socket: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) ask: Ask,
}

const EXAMPLES: &str = "\
Examples:
  sudo weir run --control -i eth0 --out-dir results &
  sudo weir ctl add flows
  sudo weir ctl add my.weir --name mine -p threshold=100
  sudo weir ctl replace mine my.weir -p threshold=500
  sudo weir ctl list

A query that writes packets around its rows (`| capture 30s by ip.src`) may be added to a run that
keeps some: sudo weir run --control --ring 256m --capture-dir /var/lib/alerts -i eth0";

/// A request to a run.
#[derive(Subcommand, Debug)]
pub(crate) enum Ask {
    /// List the programs that run
    List(ListedArgs),
    /// Run a further program
    Add(AddArgs),
    /// End a program: its windows close, and its last rows are emitted
    Remove {
        /// Its name
        name: String,
    },
    /// Run a program instead of the one of this name; stages that stay the same keep their state
    Replace(ReplaceArgs),
    /// Print the ledger so far
    Stats(ListedArgs),
    /// List the lines that say which alerts are left out
    Suppressions(ListedArgs),
    /// Leave out alerts of a rule, or of all rules (`*`)
    Suppress(SuppressArgs),
    /// Report alerts again
    Unsuppress {
        /// The line that left them out, without `until`
        line: String,
    },
    /// Read files with lines again, in place of those that were read before
    ReloadSuppressions {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// Which alerts are left out.
#[derive(Args, Debug)]
pub(crate) struct SuppressArgs {
    /// As in `alert.suppress` of its rows: 'RULE COLUMN=VALUE …'; an address may be a network
    pub(crate) line: String,

    /// For how long from now on, such as 1h; packets later than that are reported again
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) span: Option<i64>,
}

/// How a list is written.
#[derive(Args, Debug)]
pub(crate) struct ListedArgs {
    /// The format of rows [default: table on a terminal, otherwise json]
    #[arg(short, long, value_parser = format())]
    pub(crate) output: Option<&'static Format>,
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// A file, `-` for standard input, or a name from `weir list`
    #[arg(required_unless_present = "expression")]
    pub(crate) query: Option<String>,

    /// The name of the program, if it is not that of its file
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) given: GivenArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ReplaceArgs {
    /// The program to replace
    pub(crate) name: String,

    /// A file, `-` for standard input, or a name from `weir list`
    #[arg(required_unless_present = "expression")]
    pub(crate) query: Option<String>,

    #[command(flatten)]
    pub(crate) given: GivenArgs,
}

/// A query besides the word that names it.
#[derive(Args, Debug)]
pub(crate) struct GivenArgs {
    /// The text of a query, instead of a file
    #[arg(short, long, value_name = "TEXT", conflicts_with = "query")]
    pub(crate) expression: Option<String>,

    /// Set a parameter of the query
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = param)]
    pub(crate) params: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) site: SiteArgs,
}
