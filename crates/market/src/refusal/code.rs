//! The codes of refusals, and their HTTP statuses: the one place that knows both.

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $status:literal $text:literal,)+) => {
        /// What is refused. The texts are those of AIMarket where it has one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum MarketCode {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl MarketCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// As on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// Its HTTP status.
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$variant => $status,)+
                }
            }
        }
    };
}

codes! {
    /// The body is no JSON, or JSON that means different things to different readers.
    JsonInvalid = 400 "json_invalid",
    /// The body is not of the form that is asked for; `detail` is a list of `{type, loc, msg}`.
    RequestInvalid = 422 "request_invalid",
    /// The body is larger than is taken.
    BodyTooLarge = 413 "body_too_large",
    /// The body is not JSON by its content type.
    MediaTypeUnsupported = 415 "media_type_unsupported",
    /// There is no such path.
    NotFound = 404 "not_found",
    /// The path does not take this method.
    MethodNotAllowed = 405 "method_not_allowed",
    /// A header came twice, or is not text.
    HeaderInvalid = 400 "header_invalid",
    /// A product or capability id has other letters than ids have.
    IdInvalid = 400 "id_invalid",
    /// An amount is not finite, below zero, nothing where it must be more, or too much.
    AmountInvalid = 400 "amount_invalid",
    /// The same of what is put into a channel.
    DepositInvalid = 400 "deposit_invalid",
    /// `Idempotency-Key` is not of its form.
    IdempotencyKeyInvalid = 400 "idempotency_key_invalid",
    /// `X-AIMarket-Sandbox-Visitor` is not of its form.
    VisitorInvalid = 400 "visitor_invalid",
    /// More than one way to pay came with one request.
    RailsConflict = 400 "payment_rails_conflict",
    /// A visitor's free call came with a payment channel.
    SandboxConflict = 400 "sandbox_conflict",
    /// `verify`: this hub sells nothing that is paid on a verdict.
    VerifyUnsupported = 400 "verify_unsupported",
    /// `subcontract`: there are no jobs of jobs.
    SubcontractUnsupported = 400 "subcontract_unsupported",
    /// A mandate or a job token.
    MandateUnsupported = 400 "mandate_unsupported",
    /// Members that the capability needs are not in the input.
    InputIncomplete = 400 "incomplete_input",
    /// The input is not of the form that the capability names.
    InputInvalid = 400 "invalid_input",
    /// The input is larger than is taken.
    InputTooLarge = 413 "input_too_large",
    /// The channel's secret is not there.
    ChannelSecretRequired = 400 "channel_secret_required",
    /// The account key is unknown, revoked, or of an account that the operator closed.
    KeyInvalid = 401 "invalid_api_key",
    /// An agent's token is missing or not good.
    TokenInvalid = 401 "token_invalid",
    /// It costs something, and nothing was shown to pay it from.
    PaymentRequired = 402 "payment_required",
    /// Nothing was shown to fund a channel from.
    ChannelUnfunded = 400 "payment_required",
    /// What was shown to pay from does not pay it.
    PaymentFailed = 402 "payment_failed",
    /// Its provider names no address to pay to on a chain.
    ListingNotSellable = 402 "listing_not_sellable",
    /// A payment of a kind that is not taken here, or that does not pay the call.
    PaymentInvalid = 402 "payment_invalid",
    /// Nobody makes an account without a token.
    SignupClosed = 403 "signup_closed",
    /// Only the operator gives money.
    GrantRefused = 403 "grant_refused",
    /// A key with a budget does not make keys.
    KeyLimited = 403 "key_limited",
    /// `source_hub` is a hub that the operator has not let in, or shut out.
    HubNotActive = 403 "hub_not_active",
    /// `hub_url` is not the address of another hub that could be asked.
    HubUrlInvalid = 400 "hub_url_invalid",
    /// This hub lets nobody name others.
    AnnouncementsClosed = 403 "announcements_closed",
    /// As many hubs wait for the operator as there may be.
    TooManyHubs = 429 "too_many_hubs",
    /// Another hub sells it: `source_hub` says which.
    SourceHubRequired = 400 "source_hub_required",
    /// There is no such capability.
    CapabilityUnknown = 404 "capability_unknown",
    /// It is listed and cannot be invoked here.
    NotInvocable = 404 "capability_not_invocable",
    /// `source_hub` is a hub that is not known here.
    HubUnknown = 404 "hub_unknown",
    /// There is no such receipt.
    ReceiptUnknown = 404 "receipt_not_found",
    /// There is no such job, or it is not the caller's.
    JobUnknown = 404 "job_not_found",
    /// Neither the job's secret nor what pays it was shown.
    JobSecretRequired = 400 "job_secret_required",
    /// The job cannot be cancelled.
    JobBinding = 409 "job_binding",
    /// The buyer cancelled the call.
    JobCancelled = 409 "job_cancelled",
    /// The process that made the call was lost.
    JobLost = 503 "job_lost",
    /// There are no verdicts.
    VerificationUnknown = 404 "verification_not_found",
    /// There is no such channel, or this is not its secret.
    ChannelUnknown = 404 "channel_not_found",
    /// There is no such account.
    AccountUnknown = 404 "account_not_found",
    /// There is no such key of this account.
    KeyUnknown = 404 "key_not_found",
    /// Another agent sells it than the buyer said.
    PublisherChanged = 409 "publisher_changed",
    /// It costs more than the buyer said.
    PriceLimitExceeded = 409 "price_limit_exceeded",
    /// The same idempotency key came with another request.
    IdempotencyConflict = 409 "idempotency_conflict",
    /// The same request is under way.
    IdempotencyInProgress = 409 "idempotency_in_progress",
    /// The same request was answered, and the answer was too large to be kept.
    IdempotencyForgotten = 409 "idempotency_forgotten",
    /// A reference was used for something else.
    ReferenceConflict = 409 "reference_conflict",
    /// Calls of this channel are under way.
    ChannelBusy = 409 "channel_busy",
    /// The channel has ended.
    ChannelEnded = 409 "channel_ended",
    /// The owner has an account already.
    AccountExists = 409 "account_exists",
    /// The account has as many keys as it may have.
    TooManyKeys = 409 "too_many_keys",
    /// Too many requests.
    RateLimited = 429 "rate_limited",
    /// The visitor had its free calls.
    TrialsUsed = 429 "trial_quota_exhausted",
    /// As many channels are open as there may be.
    TooManyChannels = 429 "too_many_channels",
    /// There is no result of the provider; `reason` says why. Nothing is charged.
    ProviderFailed = 502 "provider_failed",
    /// The hub that does the work is not paid by this one, which sells it. Nothing is charged.
    UpstreamUnpaid = 502 "upstream_unpaid",
    /// Chains: there are none here.
    CryptoDisabled = 503 "crypto_disabled",
    /// The settings of this hub say that there is no market.
    MarketDisabled = 503 "market_disabled",
    /// It cannot be done now: the store cannot be reached, or too much is under way.
    Unavailable = 503 "unavailable",
}
