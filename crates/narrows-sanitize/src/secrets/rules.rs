//! Rules that recognize a secret by its context: its name, its header.
//!
//! Specific rules come first: the first match at a position wins. Samples are split after their
//! prefix, so that no secret scanner reports this file.

use super::rule::{Rule, Validation, contextual, keyword, prefixed};

/// Names of secrets in assignments; anything may precede them.
macro_rules! names {
    () => {
        concat!(
            r"(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?|",
            r"(?:api|access|secret|private|signing|encryption|master|auth|account|service",
            r"|preshared|session|app)[_.-]?key)"
        )
    };
}

/// Suffixes of such names.
macro_rules! suffix {
    () => {
        r"(?:[_-]?(?:value|string|data|base64|b64|plain|prod|dev|test|live|key|v?[0-9]{1,2}))?"
    };
}

/// The end of a name whose value is redacted.
pub(crate) const NAME_END: &str = concat!("(?i)", names!(), suffix!(), "$");

/// A value: no blank, quote or bracket (placeholders have brackets), and none of `$:=` at its
/// start.
macro_rules! value {
    () => {
        r"([\w!#%*+./?@^~-][\w!#$%*+./:=?@^~-]{7,})"
    };
}

pub(crate) const RULES: &[Rule] = &[
    Rule {
        validation: Validation::Jwt,
        ..prefixed(
            "jwt",
            &["eyJ"],
            r"eyJ[\w-]{10,}(?:\.[\w-]*){2,4}",
            &[
                concat!(
                    "\"eyJ",
                    "hbGciOiJIUzI1NiJ9.",
                    "eyJzdWIiOiI0NzExIn0.",
                    "rhTuvqCdmPG0tmKX\""
                ),
                concat!("xeyJ", "hbGciOiJub25lIn0.", "eyJzdWIiOiI0NzExIn0."),
            ],
            &["'eyJraWQiOiI3IiwidXNlIjoic2lnIn0.index.html'", "eyJustANameInTheCode.of_one.module"],
        )
    },
    // The labels of private keys only: certificates and public keys are not secret.
    Rule {
        validation: Validation::Any,
        ..prefixed(
            "pem-encoded",
            &["LS0tLS1CRUdJTi"],
            r"LS0tLS1CRUdJTiB(?:[BEFPST]|Q[RU])[A-Za-z0-9+/=_-]{16,}",
            &[
                concat!("data: LS0tLS1CRUdJTi", "BSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0N"),
                concat!("xLS0tLS1CRUdJTi", "BQUklWQVRFIEtFWS0tLS0tCk1JSUV2UQ=="),
            ],
            &[
                "'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURkekNDQWwrZ0F3'",
                "'LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KTUlJQklq'",
            ],
        )
    },
    contextual(
        &["access"],
        keyword(
            "aws-secret",
            Validation::Random,
            &["ecret", "ECRET"],
            1,
            // `aws configure` prompts with the old value in brackets.
            concat!(
                r"(?i)secret[_ .-]?access[_ .-]?key(?: \[[^\]\n]{0,24}\])?",
                r"[^A-Za-z0-9/+\n]{1,16}([A-Za-z0-9/+]{40,})"
            ),
            &[
                concat!("xaws_secret_access_key = ", "aBqCefuv2FSJghB6hRLeos47wGJkcU/0XXkHG5qJ"),
                concat!("\"SecretAccessKey\": \"", "ANuRose62CHN4XDEjG1kZA5kXXgwFVMAqTkNp/vs\""),
                concat!(
                    "AWS Secret Access Key [None]: ",
                    "VDP5GJtRd8oSJ/lNz5r+J/8u/M7AsZ7nrsoTV75Y"
                ),
            ],
            &[
                "aws_secret_access_key = [redacted:aws-secret:1a2b]",
                "secret-access-key-rotation at 3f786850e387550fdab836ed7e6dc881de23001b",
            ],
        ),
    ),
    // Real tokens contain a run of slashes, which would pass for filler.
    contextual(
        &["ssion", "curity"],
        keyword(
            "aws-session-token",
            Validation::Any,
            &["oken", "OKEN"],
            10,
            concat!(
                r"(?i)(?:session|security)[_ .-]?token",
                r"[^A-Za-z0-9/+\n]{1,16}([A-Za-z0-9/+=]{100,})"
            ),
            &[concat!(
                "SESSION_TOKEN=",
                "IQoJ//////////",
                "1zCC/A4cGofFQrGZ7iHyEpp2LNY2PG17+Dum2Jnk",
                "Opk+hjn45p/ed75CnrQSkZ5B70co8w7rqhY2yP+PTZSjQl"
            )],
            &["aws_session_token = <the token>", "SessionToken: [redacted:jwt:1a2b]"],
        ),
    ),
    contextual(
        &["_id"],
        keyword(
            "gcp-key-id",
            Validation::Random,
            &["_key"],
            7,
            r#"private_key_id\\?"\s{0,4}:\s{0,4}\\?"([0-9a-f]{40,})"#,
            &[
                concat!("{\"private_key_id\": \"", "8973381f412a0a4f9fa423350b233931da53f50a\"}"),
                concat!(
                    "\\\"private_key_id\\\":\\\"",
                    "0be52d057e0bd04ab3005440698c83998e1705bb\\\""
                ),
            ],
            &["\"private_key_id\": \"your-key-id\"", "\"private_key_id\": \"0123456789abcdef\""],
        ),
    ),
    keyword(
        "azure-storage-key",
        Validation::Random,
        &["ntKey", "ssKey"],
        10,
        r"(?i)(?:account|sharedaccess)key=([A-Za-z0-9/+]{40,}={0,2})",
        &[
            concat!("AccountName=a;AccountKey=", "dpdr/M0K5IQKWuonaiIFeClAV+Q5zVqMll8zRf8W==;"),
            concat!("SharedAccessKey=", "J3U+YPo09rNkW1Zw9/OHp46pBMt1toKZFr1WkBpxtxX="),
        ],
        &["AccountKey=<key>;EndpointSuffix=core.windows.net", "SharedAccessKeyName=RootManage1"],
    ),
    // In JSON the `&` may be escaped.
    keyword(
        "azure-sas",
        Validation::Random,
        &["sig="],
        5,
        r"(?:[?&;]|u0026)sig=([A-Za-z0-9%/+]{30,}=*)",
        &[
            concat!("?sv=2022-11-02&sig=", "sds5Mzgf2hLR7pnbc159%2FTWSb09LMzyCzT7%3D"),
            concat!("\\u0026sig=", "Dc9hvFRrZ3EkfiFnHQRwo9bZg9DB057anUhLWf5seVp="),
        ],
        &["&sig=short1", "config=0123456789abcdef0123456789abcdef"],
    ),
    keyword(
        "azure-secret",
        Validation::Random,
        &["8Q~", "7Q~"],
        3,
        r"[\w~.-]{3}[78]Q~[\w~.-]{31,}",
        &[
            concat!("'Vx2", "8Q~", "y4-3bmdOGIstriIp9ljM7r04zHBgsDgwOz'"),
            concat!("xk.~", "7Q~", "6AXL7kbgGmvgoyN7b3_5saPyxFe-1DS"),
        ],
        &["Vx28Q~short1", "abc7Q~xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"],
    ),
    keyword(
        "slack-webhook",
        Validation::Random,
        &["hooks.s"],
        0,
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([\w/+-]{20,})",
        &[
            concat!(
                "hooks.slack",
                ".com/services/",
                "T1KAD8ITT/BKPKM2MC1/NttWxTkwCjZkrbhUJ4CDaehb"
            ),
            concat!("xhooks.slack", ".com/triggers/", "TPE4CUHJI/2637158/7c745c48c0b90a16be3388e7"),
        ],
        &[
            concat!("hooks.slack", ".com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"),
            "https://hooks.slack.com/services/",
        ],
    ),
    keyword(
        "discord-webhook",
        Validation::Random,
        &["ebhooks/"],
        1,
        r"webhooks/[0-9]{15,20}/([\w-]{50,})",
        &[concat!(
            "/webhooks/",
            "1184203957610294875/",
            "fwV5srCLFfHHQcMZHP59YzK4D6-gLtHW_zQYc85nN7jF30XioD"
        )],
        &["POST /webhooks/1184203957610294875/messages", "src/webhooks/2024/index.ts"],
    ),
    keyword(
        "docker-auth",
        Validation::Login,
        &["auth\"", "auth\\"],
        0,
        r#"auth\\?"\s{0,4}:\s{0,4}\\?"([A-Za-z0-9+/=]{8,})\\?""#,
        &[
            concat!("\"auth\": \"", "ZGVwbG95OjlmSzJ2UTd4TG0=\""),
            concat!("{\\\"auth\\\":\\\"", "Y2ktYm90OjRjMVpyOHdOMGU=\\\"}"),
        ],
        &["\"auth\": \"ZG9ja2Vy\"", "\"auth\": \"none\"", "\"auth\": \"required\""],
    ),
    // A bare `_auth` is a common name in code; in a settings file it holds a login.
    keyword(
        "npmrc-auth",
        Validation::Random,
        &["_auth"],
        0,
        r#"_authToken\s{0,4}=\s{0,4}["']?([\w.+/=-]{8,})"#,
        &[
            concat!("//npm.a.b/:_authToken=", "c1f9a51b-b5d9-4fb3-a3fd-ebd0bd6ba93e"),
            concat!("_authToken = \"", "G4ZJiCCVBKMuaOLHcHz9OzgR\""),
        ],
        &["//registry.npmjs.org/:_authToken=${NPM_TOKEN}", "_authToken=your-token-1"],
    ),
    keyword(
        "npmrc-auth",
        Validation::Login,
        &["_auth"],
        0,
        r#"_auth\s{0,4}=\s{0,4}["']?([A-Za-z0-9+/]{8,}={0,2})"#,
        &[concat!("_auth=", "ZGVwbG95OjlmSzJ2UTd4TG0=")],
        &["client_auth = oauth2Client", "always_auth=true", "basic_auth = None"],
    ),
    keyword(
        "basic-auth",
        Validation::Login,
        &["asic"],
        1,
        r"(?i)basic\s{1,4}([A-Za-z0-9+/_-]{8,}={0,2})",
        &[
            concat!("Authorization: Basic ", "ZGVwbG95OjlmSzJ2UTd4TG0="),
            concat!("basic ", "YWRtaW46aFQ3a1EydlI5eA=="),
        ],
        &["Basic authentication", "basic settings2 of it", "Basic [redacted:basic-auth:1a2b]"],
    ),
    keyword(
        "bearer",
        Validation::Random,
        &["earer"],
        1,
        r#"(?i)bearer[\s:="']{1,4}([\w.~+/=-]{16,})"#,
        &[
            concat!("Authorization: Bearer ", "P27yMbNbz7haoTeSXTtfsLeT"),
            concat!("-H 'authorization: bearer ", "dAd3Vss1mMN7QoIQH1YU'"),
            concat!("bearer=\"", "7hcX15Jg40QpQZoN.hlkxzpeNX21i1e0f\""),
        ],
        &[
            "Authorization: Bearer <token>",
            "Authorization: Bearer ${TOKEN}",
            "the bearer authentication of the server",
            "Bearer [redacted:jwt:1a2b]",
            "Bearer xxxxxxxxxxxxxxxxxxxx1",
        ],
    ),
    // The rules above match after `Basic` and `Bearer`. This one matches other schemes and a value
    // without a scheme. A signed AWS request shows its key here.
    keyword(
        "authorization",
        Validation::Random,
        &["uthoriz"],
        1,
        concat!(
            r#"(?i)authorization["'\\\]]{0,3}\s{0,4}(?::|=>?)\s{0,4}["'\\]{0,3}"#,
            r"(?:(?:token|api-?key|bot|ssws|key|geniekey|splunk|negotiate|aws4-hmac-sha256)",
            r#"[\s=:"'\\]{1,4}){0,2}([\w.~+/=-]{16,})"#
        ),
        &[
            concat!("Authorization: token ", "Tzz6PGFr", "FNWoO0tE"),
            concat!("{\"Authorization\": \"", "txd09LQ9Oc26u6J6\"}"),
            concat!("Proxy-Authorization: SSWS ", "YLC-y3OloR0gLSp5s_kxV5zZJHE3P1G1AkFUX6Fx1l"),
            concat!("authorization=", "d00e5d07844d95b18c3a30b760203afe"),
            concat!("Authorization: Token token=\\\"", "LnShaI7S7NcbM5GD6udr\\\""),
        ],
        &[
            "Authorization: token <token>",
            "\"Authorization\": \"your-token-of-16-or-more\"",
            "authorization_endpoint=https://a.example/oauth2/authorize",
            "Authorization: https://a.example/oauth2/authorize",
            "authorization: required",
            "Authorization: [redacted:authorization:1a2b]",
        ],
    ),
    // One long value is enough to redact all: which of them opens the session is not known. Their
    // timestamps contain runs of zeros, which would pass for filler.
    keyword(
        "cookie",
        Validation::Any,
        &["ookie"],
        5,
        concat!(
            r#"(?i)(?:set-)?cookie\\?["']?\s{0,4}:\s{0,4}\\?["']?"#,
            r"((?:[\w.-]{1,64}=[\w!#$%&*+./:=?@^|~-]*;\s?)*",
            r"[\w.-]{1,64}=[\w!#$%&*+./:=?@^|~-]{16,}",
            r"(?:;\s?[\w.-]{1,64}(?:=[\w!#$%&*+./:=?@^|~-]*)?)*)"
        ),
        &[
            concat!("Cookie: theme=dark; sid=", "SRXIRFU19aC-KkD2lQ1d; t=1700000000000"),
            concat!("Set-Cookie: id=s%3A", "cecYY8mhtE2hEUJlqtdK8lbx; Path=/; HttpOnly"),
            concat!("\"cookie\": \"a=1; b=", "4697ea93ff69b5257313aee99add6cd7\""),
        ],
        &[
            "Cookie: a small text file",
            "Cookie: theme=dark; lang=en",
            "cookie: string = defaultCookie1",
            "Cookie: session=<the value of the 1st session>",
            "Cookie: [redacted:cookie:1a2b]",
        ],
    ),
    keyword(
        "assignment",
        Validation::Value,
        &[
            "assw", "ASSW", "assphr", "ecret", "ECRET", "oken", "OKEN", "_key", "_KEY", "-key",
            "-Key", "ikey", "iKey", "IKEY", "ssKey", "teKey", "ntKey", "redent", "pwd=", "Pwd=",
        ],
        48,
        concat!(
            r"(?i)[\w.-]{0,48}",
            names!(),
            suffix!(),
            r#"["'\]\\]{0,4}"#,
            // A type may stand between name and value.
            r"(?:[ \t]{0,4}:[ \t]{0,4}&?(?:'static )?str(?:ing)?)?",
            r"[ \t]{0,8}(?::=?|={1,3}>?)[ \t]{0,8}",
            r#"(?:[bru]{0,2}\\{0,3}["'`]{1,3})?"#,
            value!()
        ),
        &[
            concat!("DB_PASSWORD=", "hT7#kQ2!vR9x"),
            concat!("\"client_secret\": \"", "zDXrzRQpTA3VynMF143h\""),
            concat!("{\\\"api_key\\\":\\\"", "99c08927cae578485090\\\"}"),
            concat!("config['signing-key'] = '", "kG955u3KGxqmLo6uSbcH'"),
            concat!("let api_key: String = \"", "O73em2hpCnmzDv1cTpLP\";"),
            concat!("Server=db;Pwd=", "k9$Lw2!zQ@;Timeout=5"),
            concat!("https://a.b/?access_token=", "7d7d5abfdcb64f3f0468&page=2"),
            concat!("passphrase := `", "vedgEK47zRv67XNh`"),
            concat!("secret_key_v2: ", "wPH84NYqkQ84zs0x"),
        ],
        &[
            "token = self.next_token()",
            "token = parser.next_token_v2()",
            "password: string",
            "\"token\": \"your-token-here\"",
            "max_tokens: 16384000",
            "token: 16384000",
            "token_type = \"application_token_kind\"",
            "secret: SecretString",
            "password = os.environ[\"DB_PASSWORD\"]",
            "api_key=${API_KEY}",
            "API_KEY=example-1",
            "secret_key = 'changeme-changeme-1'",
            "Token::Identifier2(name)",
            "secret: /run/secrets/db_password_2",
            "password: [redacted:assignment:1a2b]",
        ],
    ),
    // The value of a command-line flag follows after a blank.
    keyword(
        "assignment",
        Validation::Value,
        &["assw", "assphr", "ecret", "oken", "-key", "ikey", "redent"],
        48,
        concat!(r"(?i)--[\w-]{0,46}", names!(), r#"[ \t]{1,8}(?:\\{0,3}["'])?"#, value!()),
        &[
            concat!("mysql --password ", "hT7#kQ2!vR9x"),
            concat!("--registry-auth-token \"", "mGnQVZnbY265vJW0Wp47\""),
        ],
        &[
            "docker login --password-stdin registry2.example.com",
            "docker build --secret id=npmrc,src=.npmrc .",
            "deploy --token $TOKEN --verbose",
            "--api-key <key> --region eu-west-1",
        ],
    ),
];
