import { ProcfileError } from '../runtime/errors.ts';

/** One line of a Procfile: a name and the words of its command, the program first. */
export interface ProcfileEntry {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

const LINE = /^([A-Za-z0-9_-]+)\s*:\s*(\S.*)$/;
/** A word, or a quoted text. Commands run without a shell, so that signals and the channel reach the process itself. */
const WORD = /"([^"]*)"|'([^']*)'|([^\s"']+)/g;

/**
 * Reads `name: command` lines; blank lines and `#` comments are skipped.
 * @throws ProcfileError naming the line.
 */
export function parseProcfile(text: string): ProcfileEntry[] {
  const entries: ProcfileEntry[] = [];
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const [, name, commandText] = LINE.exec(line) ?? [];
    if (name === undefined || commandText === undefined) {
      throw new ProcfileError(`line ${index + 1} is not "name: command"`);
    }
    if (entries.some((entry) => entry.name === name)) throw new ProcfileError(`line ${index + 1} repeats ${name}`);
    const [program, ...rest] = [...commandText.matchAll(WORD)].map((word) => word[1] ?? word[2] ?? word[3] ?? '');
    if (program === undefined || program === '') throw new ProcfileError(`line ${index + 1} names no program`);
    entries.push({ name, command: [program, ...rest] });
  }
  if (entries.length === 0) throw new ProcfileError('contains no process');
  return entries;
}
