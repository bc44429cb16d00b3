type Paint = (text: string) => string;

export interface Colours {
  readonly red: Paint;
  readonly green: Paint;
  readonly cyan: Paint;
  readonly dim: Paint;
}

/** Colours for a terminal; plain text elsewhere, and with NO_COLOR (https://no-color.org). */
export function coloursOf(isTerminal: boolean, environment: Readonly<Record<string, string | undefined>>): Colours {
  const isColoured = isTerminal && !environment['NO_COLOR'] && environment['TERM'] !== 'dumb';
  const paint =
    (code: number): Paint =>
    (text) =>
      isColoured ? `\x1b[${code}m${text}\x1b[0m` : text;
  return { red: paint(31), green: paint(32), cyan: paint(36), dim: paint(2) };
}
