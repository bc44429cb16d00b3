import { printable } from '../domain/values/text.ts';

/** The width of the column of process names. */
const NAME_WIDTH = 10;
const HIDDEN_FIELDS = new Set(['level', 'time', 'process', 'pid', 'msg', 'err', 'hostname']);
const MAX_VALUE_CHARS = 120;

/**
 * A line of a child process in the runner's output. JSON log lines pass unchanged, except in a terminal, where they become
 * `12:34:56 process    level message key=value`. Any other text gets the name as prefix.
 */
export function formatChildLine(name: string, line: string, forPerson: boolean): string {
  const record = parseLogLine(line);
  if (record === null) return `${name.padEnd(NAME_WIDTH)} | ${line}`;
  return forPerson ? personForm(name, record) : line;
}

/** The line as a log record: a JSON object with a level and a message. */
function parseLogLine(line: string): Record<string, unknown> | null {
  if (!line.startsWith('{')) return null;
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== 'object' || value === null || !('level' in value) || !('msg' in value)) return null;
    return value as Record<string, unknown>;
  } catch {
    return null;
  }
}

function personForm(name: string, record: Record<string, unknown>): string {
  const time = typeof record['time'] === 'string' ? record['time'].slice(11, 19) : '';
  const error = record['err'];
  const fields = Object.entries(record)
    .filter(([key]) => !HIDDEN_FIELDS.has(key))
    .map(([key, value]) => `${key}=${shown(value)}`);
  if (typeof error === 'object' && error !== null && 'message' in error) fields.push(`error=${shown(error.message)}`);
  // One child may run several processes.
  const process = typeof record['process'] === 'string' ? record['process'] : name;
  const words = [time, process.padEnd(NAME_WIDTH), String(record['level']).padEnd(5), String(record['msg']), ...fields];
  // JSON kept the control characters of foreign text escaped.
  return printable(words.join(' '));
}

function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}...` : text;
}
