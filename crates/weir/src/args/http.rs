//! The options for what a run offers over HTTP.

use crate::exit::usage;
use clap::Args;
use std::path::PathBuf;
use weir_http::{Address, Guard, HttpSocket, Token};

/// Where a run listens, and to whom.
#[derive(Args, Debug)]
pub(crate) struct HttpArgs {
    /// Listen on this address (127.0.0.1:9464) or port of 127.0.0.1, and show the ledger there as
    /// metrics for Prometheus (/metrics), and whether the run answers (/health)
    #[arg(long, value_name = "ADDRESS", value_parser = Address::parse)]
    pub(crate) metrics: Option<Address>,

    /// Answer clients of --metrics only if they send the token in this file; required unless the
    /// address is a loopback address
    #[arg(long, value_name = "FILE", requires = "metrics", hide_short_help = true)]
    pub(crate) http_token_file: Option<PathBuf>,

    /// Also answer clients of --metrics that call this host by this name; may be given several
    /// times
    #[arg(long, value_name = "NAME", requires = "metrics", hide_short_help = true)]
    pub(crate) http_host: Vec<String>,
}

impl HttpArgs {
    /// Begins to listen, if that is asked for. Clients wait until the run begins.
    pub(crate) fn listen(&self) -> anyhow::Result<Option<HttpSocket>> {
        let Some(address) = self.metrics else { return Ok(None) };
        let token = match &self.http_token_file {
            Some(path) => {
                let named = |e| usage(format!("--http-token-file {}: {e}", path.display()));
                Some(Token::read(path).map_err(named)?)
            }
            None => None,
        };
        if token.is_none() && !address.is_loopback() {
            return Err(usage(format!(
                "--metrics {address}: other hosts can connect there: name a file with a token that \
                 they must send, --http-token-file FILE, or listen on 127.0.0.1"
            )));
        }
        let guard = Guard { token, hosts: self.http_host.clone() };
        let socket = HttpSocket::bind(address, guard);
        socket
            .map(Some)
            .map_err(|e| anyhow::anyhow!("--metrics {address}: can't listen there: {e}"))
    }
}
