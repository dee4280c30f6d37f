//! Texts in many scripts, without anything to hide, and what a word is in them.

/// Name and text.
pub const SCRIPTS: [(&str, &str); 18] = [
    (
        "English",
        "The parser reads one line at a time; it keeps the token in the key of the table, and/or the \
         secret word: nothing else = nothing more. Is the password here? No, the credentials are \
         elsewhere: in the basis of auth, of either/or, i.e. 100% of them.",
    ),
    (
        "Chinese",
        "首先，我们需要读取配置文件，然后把结果写入数据库。这个函数会检查每一行，如果发现错误就停止；否则继续执行下一步。\
         和/或者，也可以使用 token 来区分不同的用户：例如“管理员”和“访客”。密码: 没有。",
    ),
    (
        "Japanese",
        "まず設定ファイルを読み込み、次に結果をデータベースに書き込みます。この関数は各行を確認し、エラーが見つかれば停止します。\
         「テスト」はすべて成功しました。パスワードは保存されません。",
    ),
    (
        "Thai",
        "ขั้นแรกเราต้องอ่านไฟล์การตั้งค่าแล้วเขียนผลลัพธ์ลงในฐานข้อมูล ฟังก์ชันนี้ตรวจสอบทุกบรรทัดและหยุดเมื่อพบข้อผิดพลาด \
         และ/หรือดำเนินการต่อไป",
    ),
    (
        "Arabic",
        "أولاً نقرأ ملف الإعدادات: ثم نكتب النتيجة في قاعدة البيانات. تتحقق هذه الدالة من كل سطر، وتتوقف \
         عند العثور على خطأ؛ أو/و تستمر إلى الخطوة التالية = تم.",
    ),
    (
        "Hebrew",
        "קודם נקרא את קובץ ההגדרות: אחר כך נכתוב את התוצאה למסד הנתונים. הפונקציה בודקת כל שורה, ו/או \
         עוצרת כאשר נמצאה שגיאה = סוף.",
    ),
    (
        "Hindi",
        "पहले हम कॉन्फ़िगरेशन फ़ाइल पढ़ते हैं: फिर परिणाम को डेटाबेस में लिखते हैं। यह फ़ंक्शन हर पंक्ति की जाँच करता है और/या त्रुटि मिलने पर \
         रुक जाता है।",
    ),
    (
        "Korean",
        "먼저 설정 파일을 읽고: 그 결과를 데이터베이스에 기록합니다. 이 함수는 모든 줄을 검사하며 및/또는 오류를 발견하면 멈춥니다. \
         비밀번호는 저장하지 않습니다.",
    ),
    (
        "Russian",
        "Сначала читаем файл настроек: затем записываем результат в базу данных. Функция проверяет каждую \
         строку и/или останавливается при ошибке = конец.",
    ),
    ("Khmer", "ដំបូងយើងអានឯកសារកំណត់រចនាសម្ព័ន្ធបន្ទាប់មកសរសេរលទ្ធផលទៅក្នុងមូលដ្ឋានទិន្នន័យ។ មុខងារនេះពិនិត្យគ្រប់បន្ទាត់។"),
    ("Burmese", "ပထမဦးစွာဆက်တင်ဖိုင်ကိုဖတ်ပြီးနောက်ရလဒ်ကိုဒေတာဘေ့စ်တွင်ရေးပါသည်။ ဤလုပ်ဆောင်ချက်သည်စာကြောင်းတိုင်းကိုစစ်ဆေးသည်။"),
    ("emoji", "Done 🎉🎉🚀 all green ✅✅✅ 👩‍👩‍👧‍👦👍🏽🇩🇪🇫🇷❤️🔥 and more 🧪🧪 → next ⚠️ one"),
    (
        "code",
        "fn token(key: &str, auth: Option<u8>) -> Result<Token, Error> {\n    let secret_name = \
         keys.get(key).map(|k| k.as_str());\n    if password.is_empty() && a != b { return Err(x); }\n    \
         let path = format!(\"{}/{}\", dir, name); // see docs: a = b / c\n    self.tokens += 1;\n}\n",
    ),
    (
        "URLs",
        "See https://example.com/a/b?c=d&e=f#g and http://localhost:8080/x/y or \
         https://docs.rs/tokio/latest/tokio/time/fn.pause.html for more; mail bob@example.com about it, \
         or ftp://files.example.org/pub now. 请看https://example.com/路径，然后继续。",
    ),
    (
        "paths",
        "Look at src/main.rs and ./lib/a.rs or ../b/c.txt then /etc/hosts and /usr/lib/x86_64-linux-gnu \
         and node_modules/@types/node before C# or a\\b in tests\\data now.",
    ),
    (
        "Markdown",
        "# Title: a = b\n\n- **bold** item: with `code` and [link](https://a.example/x) here\n- [ ] todo \
         --flag value and -x y\n1. first / second\n\n| key | value | note |\n|-----|:-----:|------|\n| a | b \
         = c | d: e |\n| token | secret | the auth key |\n\n> quoted: text -- with dashes\n\n```sh\nls -la \
         | grep x && echo done\n```\n",
    ),
    (
        "JSON",
        "{\"name\": \"demo\", \"tokens\": 12, \"list\": [1, 2, 3], \"nested\": {\"key\": \"v\", \"auth\": \
         null}, \"path\": \"a/b\"} {'names': None, \"url\": \"https://x.example/\"}",
    ),
    (
        "logs",
        "2026-11-18T06:57:14Z INFO server: listening on 127.0.0.1:7878 pid=42 ok=true\n[12:00:01] WARN \
         auth: retry in 5s (attempt 2/3) key=a/b token count: 12 x=y\n",
    ),
];

/// Whether a character is of a script that puts no blanks between words.
pub fn has_no_blanks(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0fff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{2190}'..='\u{2bff}' | '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ffef}' | '\u{1f000}'..='\u{1faff}' | '\u{20000}'..='\u{3ffff}')
}

/// How many words a text has, the last one in part: what stands between blanks, and two characters of
/// a script without them, where a word is seldom shorter.
pub fn words(text: &str) -> usize {
    let count = |word: &str| word.chars().filter(|c| has_no_blanks(*c)).count().div_ceil(2).max(1);
    text.split(|c: char| c.is_whitespace() || c == '|').filter(|w| !w.is_empty()).map(count).sum()
}
