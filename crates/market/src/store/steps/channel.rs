//! The steps of channels.

use aip_protocol::time::Timestamp;

use super::payer::Payer;
use super::{Step, page, plain, sum, whole};
use crate::limits::{OPEN_CHANNELS_MAX, OPEN_CHANNELS_OF_ACCOUNT_MAX};
use crate::money::Usd;
use crate::store::rows::{Issued, Purpose, Reference, Rows};
use crate::store::{
    Channel, ChannelId, ChannelStatus, Closed, EntryKind, Funding, NewChannel, Opened, ToppedUp, Unpayable,
};

/// Money on its way into a channel: nothing is written yet.
enum Source {
    /// It was taken off an account.
    Account(Box<Payer>),
    /// It was made: so much there is then.
    Demo(Issued),
}

impl Source {
    /// Takes an amount from where a channel's money comes from.
    async fn take<R: Rows>(
        rows: &mut R,
        funding: &Funding,
        amount: Usd,
    ) -> Result<Result<Self, Unpayable>, R::Error> {
        let (account, key) = match funding {
            Funding::Account { account, key } => (account, key),
            Funding::Demo => {
                let issued = rows.issued().await?.with(Usd::ZERO, amount);
                return Ok(issued.map(Self::Demo).ok_or(Unpayable::NoPurse));
            }
        };
        let Some(mut payer) = Payer::find(rows, account, key).await? else {
            return Ok(Err(Unpayable::NoPurse));
        };
        Ok(payer.take(amount).map(|()| Self::Account(Box::new(payer))))
    }

    /// Writes that it was put into a channel.
    async fn save<R: Rows>(
        self,
        rows: &mut R,
        channel: &ChannelId,
        amount: Usd,
        now: Timestamp,
    ) -> Result<(), R::Error> {
        match self {
            Self::Account(mut payer) => {
                payer
                    .line(rows, EntryKind::Deposit, amount, &channel.0, now)
                    .await?;
                payer.save(rows).await
            }
            Self::Demo(issued) => rows.set_issued(issued).await,
        }
    }
}

/// See [`crate::store::Channels::open_channel`].
#[derive(Debug, Clone)]
pub struct OpenChannel {
    /// What is opened.
    pub new: NewChannel,
    /// Now.
    pub now: Timestamp,
}

impl Step for OpenChannel {
    type Outcome = Opened;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<Opened, R::Error> {
        let new = &self.new;
        if let Some(there) = rows.channel(&new.id).await? {
            let is_same = there.secret_hash == new.secret_hash;
            return Ok(if is_same {
                Opened::Done(there)
            } else {
                Opened::OtherUse
            });
        }
        if rows.open_channels().await? >= OPEN_CHANNELS_MAX {
            return Ok(Opened::TooMany);
        }
        if let Funding::Account { account, .. } = &new.funding
            && rows.open_channels_of(account).await? >= OPEN_CHANNELS_OF_ACCOUNT_MAX
        {
            return Ok(Opened::TooMany);
        }
        let source = match Source::take(rows, &new.funding, new.deposit).await? {
            Ok(source) => source,
            Err(Unpayable::Insufficient(there)) => return Ok(Opened::Insufficient(there)),
            Err(Unpayable::OverBudget(left)) => return Ok(Opened::OverBudget(left)),
            Err(_) if new.funding == Funding::Demo => return Ok(Opened::TooMany),
            Err(_) => return Ok(Opened::NoAccount),
        };
        let now = whole(self.now);
        source.save(rows, &new.id, new.deposit, now).await?;
        let channel = Channel {
            id: new.id.clone(),
            secret_hash: new.secret_hash,
            funding: new.funding.clone(),
            deposit: new.deposit,
            used: Usd::ZERO,
            held: Usd::ZERO,
            refunded: Usd::ZERO,
            status: ChannelStatus::Open,
            opened_at: now,
            expires_at: whole(new.expires_at),
        };
        rows.put_channel(&channel).await?;
        Ok(Opened::Done(channel))
    }
}

/// See [`crate::store::Channels::top_up`].
#[derive(Debug, Clone)]
pub struct TopUp {
    /// Which channel.
    pub channel: ChannelId,
    /// How much.
    pub amount: Usd,
    /// Used once.
    pub reference: String,
    /// Now.
    pub now: Timestamp,
}

impl Step for TopUp {
    type Outcome = ToppedUp;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<ToppedUp, R::Error> {
        let reference = self.reference();
        let found = rows.channel(&self.channel).await?;
        if let Some(used) = rows.reference(&reference.text).await? {
            return Ok(match found {
                Some(channel) if reference.is_like(&used) => ToppedUp::Again(channel),
                _ => ToppedUp::OtherUse,
            });
        }
        let Some(mut channel) = found.filter(|channel| channel.is_payable(reference.at)) else {
            return Ok(ToppedUp::Refused);
        };
        let source = match Source::take(rows, &channel.funding, self.amount).await? {
            Ok(source) => source,
            Err(Unpayable::Insufficient(there)) => return Ok(ToppedUp::Insufficient(there)),
            Err(Unpayable::OverBudget(left)) => return Ok(ToppedUp::OverBudget(left)),
            Err(_) => return Ok(ToppedUp::Refused),
        };
        channel.deposit = sum::<R>(channel.deposit, self.amount)?;
        source.save(rows, &channel.id, self.amount, reference.at).await?;
        rows.add_reference(&reference).await?;
        rows.put_channel(&channel).await?;
        Ok(ToppedUp::Done(channel))
    }
}

impl TopUp {
    fn reference(&self) -> Reference {
        Reference {
            text: plain(&self.reference),
            purpose: Purpose::TopUp,
            subject: self.channel.0.clone(),
            amount: self.amount,
            at: whole(self.now),
        }
    }
}

/// See [`crate::store::Channels::close_channel`].
#[derive(Debug, Clone)]
pub struct CloseChannel {
    /// Which channel.
    pub channel: ChannelId,
    /// Now.
    pub now: Timestamp,
}

impl Step for CloseChannel {
    type Outcome = Closed;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<Closed, R::Error> {
        let Some(channel) = rows.channel(&self.channel).await? else {
            return Ok(Closed::Missing);
        };
        if channel.status != ChannelStatus::Open {
            return Ok(Closed::Done(channel));
        }
        if channel.held > Usd::ZERO {
            return Ok(Closed::Pending(channel.held));
        }
        let ended = end(rows, channel, ChannelStatus::Closed, whole(self.now)).await?;
        Ok(Closed::Done(ended))
    }
}

/// See [`crate::store::Channels::expire_channels`].
#[derive(Debug, Clone)]
pub struct ExpireChannels {
    /// Now.
    pub now: Timestamp,
    /// At most so many.
    pub limit: u32,
}

impl Step for ExpireChannels {
    type Outcome = Vec<Channel>;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<Vec<Channel>, R::Error> {
        let now = whole(self.now);
        let mut ended = Vec::new();
        for channel in rows.over_channels(now, page(self.limit)).await? {
            ended.push(end(rows, channel, ChannelStatus::Expired, now).await?);
        }
        Ok(ended)
    }
}

/// Ends an open channel of which nothing is held.
async fn end<R: Rows>(
    rows: &mut R,
    mut channel: Channel,
    status: ChannelStatus,
    now: Timestamp,
) -> Result<Channel, R::Error> {
    let left = channel.balance();
    channel.refunded = left;
    channel.status = status;
    if let Funding::Account { account, key } = &channel.funding {
        let mut payer = Payer::recall(rows, account, key).await?;
        payer.put_back::<R>(left)?;
        payer
            .line(rows, EntryKind::Refund, left, &channel.id.0, now)
            .await?;
        payer.save(rows).await?;
    }
    rows.put_channel(&channel).await?;
    Ok(channel)
}
