type Paint = (text: string) => string;

export interface Colours {
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
  readonly cyan: Paint;
  readonly dim: Paint;
  readonly bold: Paint;
}

/** Colours on a terminal; plain text elsewhere, with NO_COLOR (https://no-color.org) and on a dumb terminal. */
export function coloursOf(isTerminal: boolean, environment: Readonly<Record<string, string | undefined>>): Colours {
  const isColoured = isTerminal && !environment['NO_COLOR'] && environment['TERM'] !== 'dumb';
  const paint =
    (code: number): Paint =>
    (text) =>
      isColoured && text !== '' ? `\x1b[${code}m${text}\x1b[0m` : text;
  return { red: paint(31), green: paint(32), yellow: paint(33), cyan: paint(36), dim: paint(2), bold: paint(1) };
}

/** Resolves after the flush, which must precede the exit. @throws EPIPE when the reader ended */
export function write(stream: NodeJS.WritableStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

export function print(text: string): Promise<void> {
  return write(process.stdout, text);
}

export function isBrokenPipe(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'EPIPE';
}
