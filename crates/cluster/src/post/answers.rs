//! What Redis answers, read strictly.

use std::time::Duration;

use aip_relay::limits::{NAK_SECS_MAX, TAKEOVER_PAUSE_MILLIS};
use aip_relay::neighbours::{Claim, Entry, Taken};
use redis::{RedisResult, Value, from_redis_value};

/// Whether a session may begin.
pub(super) fn to_entry(answer: &RedisResult<Value>) -> Option<Entry> {
    let value = answer.as_ref().ok()?.clone();
    // The library reads a negative number as a large one unless it may be negative.
    let (generation, pause_millis) = from_redis_value::<(String, i64)>(value).ok()?;
    let pause_millis = u64::try_from(pause_millis).ok()?;
    if pause_millis > 0 {
        let pause = Duration::from_millis(pause_millis.min(TAKEOVER_PAUSE_MILLIS));
        return Some(Entry::Wait(pause));
    }
    let generation = generation.parse().ok().filter(|generation| *generation > 0)?;
    Some(Entry::In { generation })
}

/// Which of `claims` another process has.
pub(super) fn to_taken(claims: &[Claim], answer: &RedisResult<Value>) -> Option<Vec<Taken>> {
    let value = answer.as_ref().ok()?.clone();
    let numbers = from_redis_value::<Vec<i64>>(value).ok()?;
    let (pairs, rest) = numbers.as_chunks::<2>();
    let hold_max = Duration::from_secs(NAK_SECS_MAX);
    let taken = pairs.iter().map(|[index, rest_millis]| {
        let claim = claims.get(usize::try_from(*index).ok()?.checked_sub(1)?)?;
        let hold = Duration::from_millis(u64::try_from(*rest_millis).ok()?);
        Some(Taken {
            seq: claim.seq,
            hold: hold.min(hold_max),
        })
    });
    taken.collect::<Option<_>>().filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(numbers: &[i64]) -> Value {
        Value::Array(numbers.iter().map(|number| Value::Int(*number)).collect())
    }

    #[test]
    fn answers_about_claims_are_read_strictly() {
        let hold = Duration::from_secs(30);
        let claims = [Claim { seq: 7, hold }, Claim { seq: 9, hold }];
        let taken = |numbers: &[i64]| to_taken(&claims, &Ok(value(numbers)));
        assert_eq!(taken(&[]), Some(vec![]));
        let nine = Taken {
            seq: 9,
            hold: Duration::from_millis(250),
        };
        assert_eq!(taken(&[2, 250]), Some(vec![nine]));
        let bounded = taken(&[1, i64::MAX]).unwrap();
        assert_eq!(bounded[0].hold, Duration::from_hours(1));
        for bad in [&[1][..], &[0, 5], &[3, 5], &[-1, 5], &[1, -5]] {
            assert_eq!(taken(bad), None, "{bad:?}");
        }
        assert_eq!(to_taken(&claims, &Ok(Value::Nil)).unwrap_or_default(), []);
    }

    #[test]
    fn answers_about_sessions_are_read_strictly() {
        let entry = |generation: &str, pause| {
            let generation = Value::BulkString(generation.as_bytes().to_vec());
            to_entry(&Ok(Value::Array(vec![generation, Value::Int(pause)])))
        };
        assert_eq!(entry("17", 0), Some(Entry::In { generation: 17 }));
        let second = Duration::from_secs(1);
        assert_eq!(entry("0", 600_000), Some(Entry::Wait(second)));
        for (generation, pause) in [("0", 0), ("-1", 0), ("1e3", 0), ("", 0), ("x", 0), ("1", -1)] {
            assert_eq!(entry(generation, pause), None, "{generation} {pause}");
        }
        assert_eq!(to_entry(&Ok(Value::Okay)), None);
    }
}
