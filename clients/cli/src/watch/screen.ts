import type { Output } from '../io.ts';

/** A terminal is drawn at most this often. */
const DRAW_MS = 200;
/** Without the cursor and without wrapping: letters of two columns make a line longer than its number of letters. */
const BEGIN = '\x1b[?25l\x1b[?7l';
const END = '\x1b[?7h\x1b[?25h';

/** A text that is redrawn in its place on a terminal. */
export class Screen {
  readonly #output: Output;
  readonly #text: () => string;
  #lines = 0;
  #timer: NodeJS.Timeout | undefined;
  #drawing: Promise<void> = Promise.resolve();
  /** The age of a state moves without a message. */
  readonly #clock: NodeJS.Timeout;

  constructor(output: Output, text: () => string) {
    this.#output = output;
    this.#text = text;
    this.#clock = setInterval(() => this.drawSoon(), 1_000);
  }

  drawSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#drawing = this.draw();
      // The end of the reader ends the program with the next write, which is awaited.
      this.#drawing.catch(() => undefined);
    }, DRAW_MS);
  }

  async draw(): Promise<void> {
    const text = this.#text();
    const back = this.#lines === 0 ? BEGIN : `\x1b[${this.#lines}A\r`;
    this.#lines = text.split('\n').length - 1;
    // Each line is cleared to its end, and everything below the text too: no flicker, and no rest of an earlier drawing.
    await this.#output.write(`${back}${text.replaceAll('\n', '\x1b[K\n')}\x1b[J`);
  }

  async end(): Promise<void> {
    clearInterval(this.#clock);
    clearTimeout(this.#timer);
    await this.#drawing;
    await this.#output.write(END);
  }
}
