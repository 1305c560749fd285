//! The list: beginnings of words, in lower case. What is changed here is changed in `docs/protocol/market.md` (§17), too.

/// How a language says "ignore all previous instructions".
pub(super) struct Language {
    /// Ignore, forget.
    pub(super) verbs: &'static [&'static str],
    /// Those before, the system's: which orders, wherever it stands near the word for orders.
    pub(super) strong: &'static [&'static str],
    /// All, yours: which orders, right behind the verb.
    pub(super) weak: &'static [&'static str],
    /// Instructions, rules.
    pub(super) orders: &'static [&'static str],
}

pub(super) const LANGUAGES: &[Language] = &[
    // English.
    Language {
        verbs: &[
            "ignore",
            "ignoring",
            "disregard",
            "forget",
            "override",
            "overrides",
            "bypass",
        ],
        strong: &[
            "previous",
            "prior",
            "above",
            "earlier",
            "preceding",
            "foregoing",
            "system",
            "original",
        ],
        weak: &["all", "any", "your", "other"],
        orders: &[
            "instruction",
            "prompt",
            "rules",
            "guideline",
            "directive",
            "directions",
        ],
    },
    // Russian.
    Language {
        verbs: &["игнориру", "проигнориру", "забудь", "пренебреги", "отмени"],
        strong: &[
            "предыдущ",
            "прежн",
            "прошл",
            "вышеуказан",
            "вышеприведен",
            "выше",
            "систем",
            "исходн",
        ],
        weak: &["все", "всё", "свои", "любые", "твои", "ваши"],
        orders: &[
            "инструкц",
            "указани",
            "правил",
            "команд",
            "промпт",
            "подсказк",
            "директив",
        ],
    },
    // French.
    Language {
        verbs: &[
            "ignore",
            "ignorez",
            "oublie",
            "oubliez",
            "outrepasse",
            "contourne",
        ],
        strong: &[
            "précédent",
            "precedent",
            "antérieur",
            "anterieur",
            "dessus",
            "système",
            "systeme",
            "initial",
        ],
        weak: &["toutes", "tous", "tes", "vos"],
        orders: &["instruction", "consigne", "règle", "regle", "directive", "prompt"],
    },
    // German.
    Language {
        verbs: &["ignorier", "missacht", "vergiss", "vergess", "übergeh", "umgeh"],
        strong: &[
            "vorherig",
            "vorig",
            "bisherig",
            "obig",
            "früher",
            "system",
            "vorangegangen",
            "vorstehend",
            "ursprünglich",
        ],
        weak: &["alle", "deine", "ihre", "sämtliche"],
        orders: &[
            "anweisung",
            "instruktion",
            "regeln",
            "vorgabe",
            "befehl",
            "prompt",
            "systemprompt",
            "systemanweisung",
        ],
    },
    // Spanish.
    Language {
        verbs: &[
            "ignora", "ignore", "ignoren", "olvida", "olvide", "omite", "desobede",
        ],
        strong: &["anterior", "previ", "sistema", "arriba", "original"],
        weak: &["todas", "todos", "tus", "sus"],
        orders: &[
            "instrucci",
            "reglas",
            "indicaci",
            "órdenes",
            "ordenes",
            "prompt",
            "directriz",
            "directrices",
        ],
    },
];

/// How Chinese says it.
pub(super) const CHINESE: Language = Language {
    verbs: &[
        "忽略",
        "无视",
        "無視",
        "忽视",
        "忘记",
        "忘記",
        "忘掉",
        "不要理会",
        "不理会",
    ],
    strong: &[
        "之前", "以上", "先前", "前面", "上述", "所有", "系统", "系統", "原有", "一切",
    ],
    weak: &[],
    orders: &[
        "指令", "指示", "提示", "规则", "規則", "命令", "设定", "說明", "说明",
    ],
};

/// How a language says "do not mention this to the user".
pub(super) struct Hiding {
    /// Do not: words in a row.
    pub(super) not: &'static [&'static str],
    /// Tell, mention.
    pub(super) verbs: &'static [&'static str],
    /// The user.
    pub(super) users: &'static [&'static str],
    /// What stands right before that word; nothing: anything does.
    pub(super) before_user: &'static [&'static str],
    /// Words behind "do not" in which the rest is looked for.
    pub(super) words: usize,
}

const ENGLISH_TELL: &[&str] = &["tell", "inform", "mention", "notify", "alert", "warn"];
const ENGLISH_USERS: &[&str] = &["user", "human", "customer", "operator"];
const ENGLISH_BEFORE: &[&str] = &["the", "to", "your", "any"];

pub(super) const HIDING: &[Hiding] = &[
    Hiding {
        not: &["do", "not"],
        verbs: ENGLISH_TELL,
        users: ENGLISH_USERS,
        before_user: ENGLISH_BEFORE,
        words: 6,
    },
    Hiding {
        not: &["don", "t"],
        verbs: ENGLISH_TELL,
        users: ENGLISH_USERS,
        before_user: ENGLISH_BEFORE,
        words: 6,
    },
    Hiding {
        not: &["never"],
        verbs: ENGLISH_TELL,
        users: ENGLISH_USERS,
        before_user: ENGLISH_BEFORE,
        words: 6,
    },
    Hiding {
        not: &["without"],
        verbs: &["telling", "informing", "notifying", "alerting"],
        users: ENGLISH_USERS,
        before_user: ENGLISH_BEFORE,
        words: 4,
    },
    // Russian.
    Hiding {
        not: &["не"],
        verbs: &["говорите", "сообщай", "рассказывай", "упоминай", "предупреждай"],
        users: &["пользовател", "человек"],
        before_user: &[],
        words: 5,
    },
    // French: `ne dites pas cela à l'utilisateur`.
    Hiding {
        not: &["ne"],
        verbs: &["dites", "mentionne", "informe", "préviens", "prévenez", "révèle"],
        users: &["utilisateur"],
        before_user: &["l", "à", "cet"],
        words: 8,
    },
    // German: `sage dem Benutzer nichts davon`.
    Hiding {
        not: &["sage", "dem"],
        verbs: &["benutzer", "nutzer", "anwender"],
        users: &["nichts"],
        before_user: &[],
        words: 3,
    },
    Hiding {
        not: &["informiere", "den"],
        verbs: &["benutzer", "nutzer", "anwender"],
        users: &["nicht"],
        before_user: &[],
        words: 3,
    },
    // Spanish: `no le digas al usuario`.
    Hiding {
        not: &["no"],
        verbs: &[
            "digas",
            "diga",
            "informes",
            "informe",
            "menciones",
            "mencione",
            "reveles",
            "avises",
        ],
        users: &["usuario"],
        before_user: &["al", "el"],
        words: 7,
    },
];

/// Orders to choose this tool, whatever else there is.
pub(super) const PREFERRING: &[&[&str]] = &[
    &["before", "using", "any", "other", "tool"],
    &["before", "calling", "any", "other", "tool"],
    &["before", "any", "other", "tool"],
    &["instead", "of", "any", "other", "tool"],
    &["instead", "of", "all", "other", "tools"],
    &["do", "not", "use", "any", "other", "tool"],
    &["never", "use", "any", "other", "tool"],
];

/// Showing, of the prompt.
pub(super) const PROMPT_SHOWING: &[&str] = &["reveal", "print", "repeat", "leak", "send", "exfiltrate"];

/// What is shown: two words in a row.
pub(super) const PROMPT_WORDS: &[(&str, &str)] = &[
    ("system", "prompt"),
    ("hidden", "prompt"),
    ("initial", "prompt"),
    ("hidden", "instructions"),
];

/// What models take for borders of what they are told, and files that no description needs.
pub(super) const MARKS: &[&str] = &[
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "<|endoftext|>",
    "<<sys>>",
    "[inst]",
    "[/inst]",
    "<system>",
    "</system>",
    "<important>",
    "</important>",
    "begin system prompt",
    "end of system prompt",
    "~/.ssh",
    "id_rsa",
    ".cursor/mcp.json",
];
