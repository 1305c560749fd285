//! Server-sent events (WHATWG HTML, 9.2), written and read. A reader holds one event at most, of a bounded size, however the
//! bytes come: a stream is a stranger's.

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name; `message` where it has none.
    pub name: String,
    /// Its data, the lines joined by line feeds.
    pub data: String,
    /// The last id that was said, of at most [`ID_BYTES_MAX`] bytes.
    pub id: Option<String>,
}

/// The longest id that is kept: every event after it has it, too. A longer one is as good as none was said.
pub const ID_BYTES_MAX: usize = 256;

/// An event is longer than the reader takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {bytes_max} bytes")]
pub struct EventTooLong {
    /// The most that is taken.
    pub bytes_max: usize,
}

/// Reads events from bytes as they come.
#[derive(Debug)]
pub struct Decoder {
    bytes_max: usize,
    line: Vec<u8>,
    /// The line before ended in CR: a LF right after it ends no line.
    after_cr: bool,
    is_first_line: bool,
    name: String,
    data: String,
    has_data: bool,
    id: Option<String>,
}

impl Decoder {
    /// A reader that takes events of so many bytes at most.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            after_cr: false,
            is_first_line: true,
            name: String::new(),
            data: String::new(),
            has_data: false,
            id: None,
        }
    }

    /// Takes bytes, and gives back the events that they complete. What is not complete at the end of a stream is none.
    ///
    /// # Errors
    /// An event is too long; nothing good comes of what follows.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, EventTooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            let is_second_half = byte == b'\n' && self.after_cr;
            self.after_cr = byte == b'\r';
            if is_second_half {
                continue;
            }
            if matches!(byte, b'\n' | b'\r') {
                events.extend(self.end_line());
                continue;
            }
            if self.line.len() + self.data.len() >= self.bytes_max {
                return Err(EventTooLong {
                    bytes_max: self.bytes_max,
                });
            }
            self.line.push(byte);
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let line = if std::mem::replace(&mut self.is_first_line, false) {
            line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line)
        } else {
            &line
        };
        if line.is_empty() {
            return self.dispatch();
        }
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "id" if !value.contains('\0') && value.len() <= ID_BYTES_MAX => self.id = Some(value.to_owned()),
            // Comments, and what other readers use.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        let has_data = std::mem::replace(&mut self.has_data, false);
        has_data.then(|| Event {
            name: if name.is_empty() {
                "message".to_owned()
            } else {
                name
            },
            data,
            id: self.id.clone(),
        })
    }
}

/// Writes an event whose data is JSON. Line breaks between its tokens, which are space to JSON, begin lines of their own.
pub fn put_json(text: &mut Vec<u8>, name: &str, id: Option<u64>, json: &[u8]) {
    if let Some(id) = id {
        text.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    text.extend_from_slice(format!("event: {name}\n").as_bytes());
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    for line in json.split(is_break).filter(|line| !line.is_empty()) {
        text.extend_from_slice(b"data: ");
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str, id: Option<&str>) -> Event {
        Event {
            name: name.to_owned(),
            data: data.to_owned(),
            id: id.map(str::to_owned),
        }
    }

    fn read(stream: &[u8], step: usize) -> Vec<Event> {
        let mut decoder = Decoder::new(1_000);
        stream
            .chunks(step)
            .flat_map(|chunk| decoder.push(chunk).unwrap())
            .collect()
    }

    /// The examples of the standard, and what it says of their ends.
    #[test]
    fn a_stream_means_what_the_standard_says_however_it_is_cut() {
        let stream = "\u{feff}: a comment\n\ndata: YHOO\ndata: +2\r\ndata:10\r\rid: 1\nevent: add\ndata:  two spaces\n\n\
            event: gone\n\ndata\n\ndata\ndata\n\nid\nretry: 10\nunknown: x\ndata: é\n\ndata: cut off";
        let expected = [
            event("message", "YHOO\n+2\n10", None),
            event("add", " two spaces", Some("1")),
            event("message", "", Some("1")),
            event("message", "\n", Some("1")),
            event("message", "é", Some("")),
        ];
        for step in [1, 2, 3, 7, 1_000] {
            assert_eq!(read(stream.as_bytes(), step), expected, "{step}");
        }
    }

    #[test]
    fn what_is_no_text_harms_nobody() {
        assert_eq!(
            read(b"data: \xff\xfe\nid: a\0b\n\n", 1),
            [event("message", "\u{fffd}\u{fffd}", None)]
        );
    }

    #[test]
    fn an_event_without_an_end_is_cut_off() {
        for stream in [
            &b"data: aaaaaaaa"[..],
            b": aaaaaaaaaaaaa",
            b"data: aa\ndata: aa\ndata: aa\ndata: aa",
        ] {
            let mut decoder = Decoder::new(12);
            assert_eq!(decoder.push(stream), Err(EventTooLong { bytes_max: 12 }));
        }
        // Short ones, for ever, are no trouble.
        let mut decoder = Decoder::new(12);
        for _ in 0..1_000 {
            assert_eq!(decoder.push(b"data: abc\n\n").unwrap().len(), 1);
        }
    }

    #[test]
    fn an_id_that_is_long_is_not_had_by_all_events_after_it() {
        let long = "1".repeat(ID_BYTES_MAX + 1);
        let fits = "1".repeat(ID_BYTES_MAX);
        let stream = format!("id: {long}\ndata: a\n\nid: {fits}\ndata: b\n\n");
        assert_eq!(
            read(stream.as_bytes(), 7),
            [
                event("message", "a", None),
                event("message", "b", Some(fits.as_str()))
            ]
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let mut text = Vec::new();
        put_json(&mut text, "result", Some(7), b"{\r\n \"a\":\n1}\n");
        put_json(&mut text, "progress", None, b"1");
        assert_eq!(
            String::from_utf8(text.clone()).unwrap(),
            "id: 7\nevent: result\ndata: {\ndata:  \"a\":\ndata: 1}\n\nevent: progress\ndata: 1\n\n"
        );
        assert_eq!(
            read(&text, 5),
            [
                event("result", "{\n \"a\":\n1}", Some("7")),
                event("progress", "1", Some("7"))
            ]
        );
    }
}
