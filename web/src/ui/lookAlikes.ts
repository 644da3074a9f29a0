// Letters and signs that look like ASCII characters and are others.
//
// Owns the table of these characters, and where one of them is suspicious. The texts come from an
// agent, and people decide by them: a `cat` with a Cyrillic letter in it is another program.
// `src/quarterdeck/domain/look_alikes.py` has the same table and rules; tests/fixtures/marks.json
// checks that both behave alike.

/**
 * For each ASCII letter the letters of other scripts that look like it. Each of them is common in its
 * own script: it is suspicious in a word with ASCII letters, and in code in a word of nothing else.
 */
export const LETTERS: Readonly<Record<string, string>> = {
  a: "\u0430",
  c: "\u0441\u03f2\u217d\u2ca5",
  d: "\u0501\u217e",
  e: "\u0435\u04bd",
  h: "\u04bb\u0570",
  i: "\u0456\u2170\u13a5",
  j: "\u0458\u03f3",
  l: "\u04cf\u217c",
  m: "\u217f",
  n: "\u0578",
  o: "\u043e\u03bf\u0585\u2c9f\u1d0f",
  p: "\u0440\u03c1\u2ca3",
  q: "\u051b\u0566",
  s: "\u0455",
  u: "\u057d",
  v: "\u0475\u03bd\u2174",
  w: "\u051d\u0461",
  x: "\u0445\u2179\u2cad",
  y: "\u0443\u04af",
  g: "\u0581",
  b: "\u13cf\u042c",
  A: "\u0410\u0391\u13aa",
  B: "\u0412\u0392\u13f4",
  C: "\u0421\u03f9\u13df\u216d",
  D: "\u13a0\u216e",
  E: "\u0415\u0395\u13ac",
  G: "\u050c\u13c0",
  H: "\u041d\u0397\u13bb",
  I: "\u0406\u04c0\u0399\u2160",
  J: "\u0408\u037f\u13ab",
  K: "\u041a\u039a\u13e6",
  L: "\u13de\u216c",
  M: "\u041c\u039c\u13b7\u216f",
  N: "\u039d",
  O: "\u041e\u039f\u0555",
  P: "\u0420\u03a1\u13e2",
  S: "\u0405\u13da\u054f",
  T: "\u0422\u03a4\u13a2",
  V: "\u0474\u13d9\u2164",
  W: "\u051c\u13b3",
  X: "\u0425\u03a7\u2169",
  Y: "\u04ae\u03a5\u13bd",
  Z: "\u0396\u13c3",
  R: "\u13a1\u13d2",
};

/** The same for what is usual in prose: it is suspicious in code only. */
export const SIGNS: Readonly<Record<string, string>> = {
  i: "\u0131",
  a: "\u0251",
  g: "\u0261",
  "!": "\u01c3",
  ";": "\u037e",
  ".": "\u2024",
  "/": "\u2044\u2215",
  ":": "\u2236\ua789",
  "-": "\u2010\u2011\u2212",
  "|": "\u2223\u01c0",
  "~": "\u223c",
  "*": "\u2217",
  "\\": "\u2216",
  "'": "\u02b9\u02bc",
  "`": "\u02cb",
};

/** Full-width letters and digits, and those of formulas: the same characters in another shape. */
const WIDE = "\\uff10-\\uff19\\uff21-\\uff3a\\uff41-\\uff5a\\u{1d400}-\\u{1d7ff}";

const turned = (table: Readonly<Record<string, string>>): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(table).flatMap(([ascii, others]) => [...others].map((one) => [one, ascii])),
  );

const LIKE = turned(LETTERS);
const SIGN = turned(SIGNS);
const SOME = new RegExp(`[${[...LIKE.keys(), ...SIGN.keys()].join("")}${WIDE}]`, "u");
const WORD = /[\p{L}\p{N}_]+/gu;
const ASCII_LETTER = /[A-Za-z]/;
const ASCII = /^[\0-\x7f]$/;

/** The ASCII character that another one looks like. */
export function looksLike(character: string): string | undefined {
  const known = LIKE.get(character) ?? SIGN.get(character);
  if (known !== undefined || !SOME.test(character)) return known;
  const plain = character.normalize("NFKD");
  return ASCII.test(plain) ? plain : undefined;
}

/** The places of the characters that are there to be taken for others, in order. */
export function suspicious(text: string, code: boolean): number[] {
  if (!SOME.test(text)) return [];
  const found: number[] = [];
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!SOME.test(word)) continue;
    const letters = [...word];
    const mixed = ASCII_LETTER.test(word);
    const disguised =
      code && letters.every((one) => looksLike(one) !== undefined || ASCII.test(one));
    if (!mixed && !disguised) continue;
    let at = index;
    for (const letter of letters) {
      if (!SIGN.has(letter) && looksLike(letter) !== undefined) found.push(at);
      at += letter.length;
    }
  }
  if (code) {
    [...text].reduce((at, one) => {
      if (SIGN.has(one)) found.push(at);
      return at + one.length;
    }, 0);
  }
  return found.sort((a, b) => a - b);
}
