import { parseArgs } from "node:util";
import { storeNames } from "./stores.mjs";

/** The options of a campaign: how many, the seed, which stores; prints the help and ends where that is asked for or needed. */
export function campaignOptions(help, counts) {
  const texts = { seed: String(Date.now()), store: "both" };
  const spec = { help: { type: "boolean", default: false } };
  for (const [name, value] of Object.entries({ ...counts, ...texts }))
    spec[name] = { type: "string", default: String(value) };
  try {
    const { help: wantsHelp, seed, store, ...given } = parseArgs({ options: spec }).values;
    if (wantsHelp) return end(help, 0);
    const numbers = Object.entries(given).map(([name, text]) => [name, countOf(name, text)]);
    return { seed, store, names: namesOf(store), ...Object.fromEntries(numbers) };
  } catch (error) {
    return end(`${error.message}\n\n${help}`, 2);
  }
}

function countOf(name, text) {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) throw new Error(`--${name} is a number from 1 up, not "${text}".`);
  return number;
}

function namesOf(store) {
  if (store === "both") return storeNames;
  if (!storeNames.includes(store)) throw new Error(`--store is ${storeNames.join(", ")} or both, not "${store}".`);
  return [store];
}

function end(text, code) {
  console.log(text);
  process.exit(code);
}
