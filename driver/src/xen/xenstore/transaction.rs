//! Transactions: requests that take effect together or not at all.

use super::client::{Client, Part, parse_transaction_id};
use super::error::{Error, ProtocolError};
use super::request::{Requests, to_unit};
use super::wire::Kind;
use alloc::rc::Rc;
use core::ops::Deref;

/// A transaction under way, for [`super::Xenstore::transaction`]'s body: the requests made through
/// it are part of it. Dropped without a commit, it is aborted.
#[derive(Debug)]
pub struct Transaction {
    requests: Requests,
    open: bool,
}

impl Transaction {
    pub(super) async fn start(client: Rc<Client>) -> Result<Self, Error> {
        let outside = Requests::new(client.clone(), 0);
        let start = [Part::Str("\0")];
        let tx_id = outside
            .request(Kind::TransactionStart, &start, |reply| {
                let malformed = ProtocolError::BadPayload {
                    kind: Kind::TransactionStart as u32,
                };
                Ok(parse_transaction_id(reply).ok_or(malformed)?)
            })
            .await?;
        Ok(Self {
            requests: Requests::new(client, tx_id),
            open: true,
        })
    }

    pub(super) async fn commit(mut self) -> Result<(), Error> {
        self.open = false;
        let end = [Part::Str("T\0")];
        let result = self
            .requests
            .request(Kind::TransactionEnd, &end, to_unit)
            .await;
        // It was not sent, so the transaction is still to be ended.
        self.open = result == Err(Error::TooManyRequests);
        result
    }
}

impl Deref for Transaction {
    type Target = Requests;

    fn deref(&self) -> &Requests {
        &self.requests
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.open {
            self.requests.client().submit_and_forget(
                Kind::TransactionEnd,
                self.requests.tx_id(),
                &[Part::Str("F\0")],
            );
        }
    }
}
