//! Which receiver fits a target.

use crate::alertmanager::Alertmanager;
use crate::connection::Route;
use crate::mail::Mailbox;
use crate::receiver::{Receiver, Sender};
use crate::syslog::{SyslogConnection, SyslogSocket};
use crate::target::{Kind, Target, Transport};
use crate::webhook::Webhook;

/// Makes what delivers to a target. It reads the certificates of the system, so this comes before
/// files are out of reach.
pub(crate) fn receiver(target: &Target, sender: &Sender) -> Result<Box<dyn Receiver>, String> {
    let tls = target.trust.as_ref().map(|trust| trust.config()).transpose()?;
    let route = Route { peer: target.peer.clone(), tls };
    Ok(match &target.kind {
        Kind::Syslog(form) => match form.transport {
            Transport::Datagrams => {
                Box::new(SyslogSocket::new(target.peer.clone(), form.facility, sender.clone()))
            }
            Transport::Stream => {
                Box::new(SyslogConnection::new(route, form.facility, sender.clone()))
            }
        },
        Kind::Webhook(form) => Box::new(Webhook::new(route, form.clone())),
        Kind::Mail(form) => Box::new(Mailbox::new(route, form.clone(), sender.clone())),
        Kind::Alertmanager(form) => Box::new(Alertmanager::new(route, form.clone())),
    })
}
