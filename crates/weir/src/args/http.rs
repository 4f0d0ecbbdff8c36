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

    /// Listen on this address, or port of 127.0.0.1, for clients of a JSON API
    ///
    /// Clients do what `weir ctl` does (/api/v1/openapi.json): they change programs, and read their
    /// rows. It also shows what --metrics does, and clients need a token (--http-token-file).
    #[arg(long, value_name = "ADDRESS", value_parser = Address::parse)]
    #[arg(conflicts_with = "metrics")]
    pub(crate) http: Option<Address>,

    /// Answer clients of --metrics and --http only if they send the token in this file; required
    /// for --http (`weir serve` makes one itself on a loopback address), and for --metrics on other
    /// addresses than loopback ones
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) http_token_file: Option<PathBuf>,

    /// Also answer clients of --metrics and --http that call this host by this name; may be given
    /// several times
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) http_host: Vec<String>,

    /// A token of the run's own, which it tells who starts it.
    #[arg(skip)]
    pub(crate) own_token: Option<Token>,
}

impl HttpArgs {
    /// Whether any of these options was given.
    pub(crate) fn is_asked_for(&self) -> bool {
        let HttpArgs { metrics, http, http_token_file, http_host, own_token: _ } = self;
        metrics.is_some() || http.is_some() || http_token_file.is_some() || !http_host.is_empty()
    }

    /// Begins to listen, if that is asked for. Clients wait until the run begins.
    pub(crate) fn listen(&self) -> anyhow::Result<Option<HttpSocket>> {
        let (option, address) = match (self.http, self.metrics) {
            (Some(address), _) => ("--http", address),
            (None, Some(address)) => ("--metrics", address),
            (None, None) if self.http_token_file.is_some() || !self.http_host.is_empty() => {
                return Err(usage(
                    "--http-token-file and --http-host only apply to --metrics and --http",
                ));
            }
            (None, None) => return Ok(None),
        };
        let token = match &self.http_token_file {
            Some(path) => {
                let named = |e| usage(format!("--http-token-file {}: {e}", path.display()));
                Some(Token::read(path).map_err(named)?)
            }
            None => self.own_token.clone(),
        };
        if token.is_none() && self.http.is_some() && address.is_loopback() {
            return Err(usage(format!(
                "{option} {address}: clients may change programs, so they need a token: name a \
                 file with one, --http-token-file FILE"
            )));
        }
        if token.is_none() && !address.is_loopback() {
            return Err(usage(format!(
                "{option} {address}: other hosts can connect there: name a file with a token that \
                 they must send, --http-token-file FILE, or listen on 127.0.0.1"
            )));
        }
        let guard = Guard { token, hosts: self.http_host.clone() };
        let socket = HttpSocket::bind(address, guard);
        socket.map(Some).map_err(|e| anyhow::anyhow!("{option} {address}: can't listen there: {e}"))
    }
}
