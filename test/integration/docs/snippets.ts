import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { ROOT, type Snippet } from '../../support/markdown.ts';

export interface ShellResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A folder for the files of one run, with the packages, `oddswire`, and an `npm` without the build. */
export interface SnippetFolder {
  readonly path: string;
  remove(): Promise<void>;
}

/**
 * `npm run [--silent] NAME -- ARGUMENTS` of the operator's commands: the test run has built `dist`, and other tests run from it, so
 * nothing is built here.
 */
const NPM = `#!/bin/sh
[ "$1" = run ] || { echo "npm $*: not a command of oddswire" >&2; exit 64; }
shift
[ "$1" = --silent ] && shift
name=$1
shift
[ "$1" = -- ] && shift
exec oddswire "$name" "$@"
`;
const ODDSWIRE = `#!/bin/sh
exec "${process.execPath}" "${ROOT}/dist/bin/oddswire.js" "$@"
`;

export async function openSnippetFolder(): Promise<SnippetFolder> {
  const path = await mkdtemp(join(tmpdir(), 'oddswire-docs-'));
  await mkdir(join(path, 'bin'));
  for (const [name, text] of Object.entries({ npm: NPM, oddswire: ODDSWIRE })) {
    await writeFile(join(path, 'bin', name), text, { mode: 0o755 });
  }
  await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** An HTTP error of a printed call fails the snippet. */
const PRELUDE = `set -eu
curl() { command curl --fail-with-body --silent --show-error --max-time 30 "$@"; echo; }
`;

/** A printed assignment of a setting, such as \`KEY=...\`, gets the value of the test; everything else runs as printed. */
function withSettings(text: string, settings: Readonly<Record<string, string>>): string {
  return text.replaceAll(/^([A-Z]+)=.*$/gm, (line, name: string) => (Object.hasOwn(settings, name) ? '' : line));
}

/** Runs a shell snippet with the settings as variables. */
export async function runShell(
  folder: SnippetFolder,
  { text }: Pick<Snippet, 'text'>,
  settings: Readonly<Record<string, string>>,
): Promise<ShellResult> {
  const env = { PATH: `${join(folder.path, 'bin')}:${process.env['PATH'] ?? ''}`, ...settings };
  const child = spawn('sh', ['-c', PRELUDE + withSettings(text, settings)], { cwd: folder.path, env });
  child.stdin.end();
  const [out, err, [code]] = await Promise.all([textOf(child.stdout), textOf(child.stderr), once(child, 'close')]);
  return { code: typeof code === 'number' ? code : 1, out, err };
}
