import type { Io, Output } from './io.ts';

export interface Colours {
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
  dim(text: string): string;
  bold(text: string): string;
}

/** Colours on a terminal; plain text elsewhere, with NO_COLOR (https://no-color.org) and on a dumb terminal. */
export function coloursOf(output: Output, env: Io['env']): Colours {
  const isColoured = output.isTerminal && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  const paint = (code: number) => (text: string) => (isColoured && text !== '' ? `\x1b[${code}m${text}\x1b[0m` : text);
  return { red: paint(31), green: paint(32), yellow: paint(33), cyan: paint(36), dim: paint(2), bold: paint(1) };
}
