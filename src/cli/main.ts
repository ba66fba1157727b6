#!/usr/bin/env node
// The command `bough`. Everything it can do is in the table (commands.ts).

import { interruptSignal } from "./interrupt.ts";
import { hideSecrets } from "./process-title.ts";
import { runCli } from "./run.ts";
import { processTerminal } from "./terminal.ts";
import { showWarnings } from "./warnings.ts";

hideSecrets(process.argv.slice(2));
const longestMs = 2 ** 31 - 1;
// A waiting store does not keep the process alive, and a command that follows a branch has nothing else that would.
const alive = setInterval(() => {}, longestMs);
const terminal = processTerminal();
showWarnings(terminal);
process.exitCode = await runCli(process.argv.slice(2), { terminal, signal: interruptSignal() });
clearInterval(alive);
// A tool from a configuration may hang; the process exits anyway when the command is done.
setTimeout(() => process.exit(), 500).unref();
