#!/usr/bin/env node
// npm run bench:profile -- <bench>...            runs benches, profiles all of their processes and prints the time by function
// npm run bench:profile -- <file.cpuprofile>...  prints the same of existing profiles; Chrome's DevTools open them, too
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { summaryOf } from './support/profile-summary.mjs';

const given = process.argv.slice(2);
if (given.length === 0) {
  console.error('name a bench (deliveries, ingest, reads, …) or a .cpuprofile');
  process.exit(2);
}

async function profilesOf(benches) {
  const folder = mkdtempSync(join(tmpdir(), 'oddswire-profile-'));
  const hook = pathToFileURL(join(import.meta.dirname, 'profile-hook.mjs'));
  hook.searchParams.set('folder', folder);
  const vitest = join(import.meta.dirname, '..', 'node_modules', 'vitest', 'vitest.mjs');
  const filters = benches.map((bench) => `bench/${bench}`);
  const child = spawn(process.execPath, [vitest, 'run', '--config', 'vitest.bench.config.ts', ...filters], {
    env: { ...process.env, BENCH_NODE_OPTIONS: `--import ${hook.href}` },
    stdio: 'inherit',
  });
  const [code] = await once(child, 'exit');
  if (code !== 0) process.exitCode = 1;
  return readdirSync(folder)
    .sort()
    .map((name) => join(folder, name));
}

const isProfile = (name) => name.endsWith('.cpuprofile');
const files = given.every(isProfile) ? given : await profilesOf(given);
for (const file of files) console.log(`\n${summaryOf(file)}`);
