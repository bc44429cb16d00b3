#!/usr/bin/env node
import { processIo } from './io.ts';
import { runCli } from './run-cli.ts';

const io = processIo();
process.exit(await runCli(process.argv.slice(2), io));
