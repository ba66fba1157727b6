// Terminal helpers that the examples share: colours, text that wraps between words, and a question to the user.

import { createInterface } from "node:readline/promises";
import { styleText } from "node:util";

const { stdin, stdout, env } = process;

/** Adds colour if the output is a terminal and NO_COLOR is not set. */
export function paint(style, text) {
  return stdout.isTTY && !env.NO_COLOR ? styleText(style, text) : text;
}

/** Asks at the terminal. Without one (a pipe, CI), returns the scripted answer and prints it. */
export async function ask(question, scripted) {
  if (!stdin.isTTY || !stdout.isTTY) {
    console.log(`${question}${scripted} (scripted)`);
    return scripted;
  }
  const terminal = createInterface({ input: stdin, output: stdout });
  try {
    return (await terminal.question(question)).trim().toLowerCase();
  } finally {
    terminal.close();
  }
}

/** Writes text as it arrives, word by word; every line starts at the same column. */
export function flow(indent, style) {
  const width = Math.min(stdout.columns || 80, 100);
  let column = indent;
  let word = "";
  let hasSpace = false;
  const breakLine = () => {
    stdout.write(`\n${" ".repeat(indent)}`);
    column = indent;
    hasSpace = false;
  };
  const putWord = () => {
    if (word === "") return;
    if (column > indent && column + 1 + word.length > width) breakLine();
    const piece = hasSpace && column > indent ? ` ${word}` : word;
    stdout.write(style ? paint(style, piece) : piece);
    column += piece.length;
    word = "";
    hasSpace = false;
  };
  return {
    write(text) {
      for (const char of text) {
        if (!/\s/.test(char)) {
          word += char;
          continue;
        }
        putWord();
        hasSpace = true;
        if (char === "\n") breakLine();
      }
    },
    end() {
      putWord();
      stdout.write("\n");
    },
  };
}
