#!/usr/bin/env node
import { runOddswire } from './run-oddswire.ts';

process.exit(await runOddswire(process.argv.slice(2)));
