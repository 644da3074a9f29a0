// Maths in Markdown: `$x$`, `$$x$$`, `\(x\)` and `\[x\]`, as an extension of the parser.
//
// A `$` is also money and a shell's variable. So what begins with one is maths only if a formula could
// stand there: no blank inside its marks, no letter or digit behind it, and something that text has not.
import type { Literal } from "mdast";
import type { CompileContext, Token, Extension as TreeExtension } from "mdast-util-from-markdown";
import type { Code, Construct, Effects, Extension, State } from "micromark-util-types";

export interface InlineMath extends Literal {
  type: "inlineMath";
  display: boolean;
}

declare module "mdast" {
  interface PhrasingContentMap {
    inlineMath: InlineMath;
  }
  interface RootContentMap {
    inlineMath: InlineMath;
  }
}

declare module "micromark-util-types" {
  interface TokenTypeMap {
    maths: "maths";
    mathsMark: "mathsMark";
    mathsText: "mathsText";
  }
}

/** The longest formula, in letters. Each mark is looked behind no further: hostile text has many. */
export const LONGEST_FORMULA = 1_500;
const DOLLAR = 36;
const BACKSLASH = 92;
const SPACE = 32;
/** The ends of `\(` and `\[`. */
const CLOSING: ReadonlyMap<number, number> = new Map([
  [40, 41],
  [91, 93],
]);

const isBlank = (code: Code): boolean => code === null || code < 0 || code === SPACE || code === 9;
const isWord = (code: Code): boolean =>
  code !== null && code > 0 && /[\p{L}\p{N}]/u.test(String.fromCharCode(code));

/** Whether something between single `$` looks like a formula. */
function isFormula(letters: string): boolean {
  return /[\\^_=<>+*/|{}]/.test(letters) || /^[A-Za-z]$/.test(letters);
}

/** A token is never empty: it begins with its first letter. */
function textIn(effects: Effects): { enter: () => void; leave: () => void } {
  let open = false;
  return {
    enter: () => {
      if (!open) effects.enter("mathsText");
      open = true;
    },
    leave: () => {
      if (open) effects.exit("mathsText");
      open = false;
    },
  };
}

const dollar: Construct = { name: "maths", tokenize: tokenizeDollar };

function tokenizeDollar(this: { previous: Code }, effects: Effects, ok: State, nok: State): State {
  const before = this.previous;
  let marks = 0;
  let closing = 0;
  let letters = "";
  let last: Code = null;
  const { enter, leave } = textIn(effects);
  return start;

  function start(code: Code): State | undefined {
    if (isWord(before)) return nok(code);
    effects.enter("maths");
    effects.enter("mathsMark");
    return opening(code);
  }
  function opening(code: Code): State | undefined {
    if (code === DOLLAR && marks < 2) {
      marks += 1;
      effects.consume(code);
      return opening;
    }
    if (code === DOLLAR || code === null) return nok(code);
    if (marks === 1 && isBlank(code)) return nok(code);
    effects.exit("mathsMark");
    return inside(code);
  }
  function inside(code: Code): State | undefined {
    if (code === null || letters.length > LONGEST_FORMULA) return nok(code);
    if (code === DOLLAR && last !== BACKSLASH && letters) {
      if (marks === 1 && isBlank(last)) return nok(code);
      leave();
      effects.enter("mathsMark");
      return ending(code);
    }
    if (code < -2 || (code < 0 && marks === 2)) return lineEnd(code);
    if (code < 0) return nok(code);
    letters += String.fromCharCode(code);
    last = code;
    enter();
    effects.consume(code);
    return inside;
  }
  function lineEnd(code: Code): State | undefined {
    if (marks === 1) return nok(code);
    letters += " ";
    last = SPACE;
    leave();
    effects.enter("lineEnding");
    effects.consume(code);
    effects.exit("lineEnding");
    return inside;
  }
  function ending(code: Code): State | undefined {
    if (code === DOLLAR && closing < marks) {
      closing += 1;
      effects.consume(code);
      return ending;
    }
    if (closing < marks || isWord(code)) return nok(code);
    if (marks === 1 && !isFormula(letters)) return nok(code);
    effects.exit("mathsMark");
    effects.exit("maths");
    return ok(code);
  }
}

const bracket: Construct = { name: "mathsBracket", tokenize: tokenizeBracket };

function tokenizeBracket(effects: Effects, ok: State, nok: State): State {
  let end: number | undefined;
  let length = 0;
  const { enter, leave } = textIn(effects);
  return (code) => {
    effects.enter("maths");
    effects.enter("mathsMark");
    effects.consume(code);
    return opened;
  };

  function opened(code: Code): State | undefined {
    end = code === null ? undefined : CLOSING.get(code);
    if (end === undefined) return nok(code);
    effects.consume(code);
    effects.exit("mathsMark");
    return inside;
  }
  function inside(code: Code): State | undefined {
    if (code === null || ++length > LONGEST_FORMULA) return nok(code);
    if (code === BACKSLASH && length > 1) {
      return effects.check(closesWith(end ?? 0), closed, letter)(code);
    }
    return letter(code);
  }
  function letter(code: Code): State | undefined {
    if (code === null) return nok(code);
    if (code < -2) {
      leave();
      effects.enter("lineEnding");
      effects.consume(code);
      effects.exit("lineEnding");
      return inside;
    }
    enter();
    effects.consume(code);
    return inside;
  }
  function closed(code: Code): State | undefined {
    leave();
    effects.enter("mathsMark");
    effects.consume(code);
    return last;
  }
  function last(code: Code): State | undefined {
    effects.consume(code);
    effects.exit("mathsMark");
    effects.exit("maths");
    return ok;
  }
}

/** A backslash with this letter behind it. */
const closesWith = (end: number): Construct => ({
  partial: true,
  tokenize(effects, ok, nok) {
    return (code) => {
      effects.enter("mathsMark");
      effects.consume(code);
      return (next) => {
        if (next !== end) return nok(next);
        effects.consume(next);
        effects.exit("mathsMark");
        return ok;
      };
    };
  },
});

/** For the parser. */
export const maths: Extension = { text: { [DOLLAR]: dollar, [BACKSLASH]: bracket } };

/** For the tree. */
export const mathsFromMarkdown: TreeExtension = {
  enter: {
    maths(this: CompileContext, token: Token) {
      const source = this.sliceSerialize(token);
      const marks = source.startsWith("$$") || source[0] === "\\" ? 2 : 1;
      const display = source.startsWith("$$") || source.startsWith("\\[");
      const value = source.slice(marks, -marks).trim();
      this.enter({ type: "inlineMath", value, display }, token);
    },
  },
  exit: {
    maths(this: CompileContext, token: Token) {
      this.exit(token);
    },
  },
};
