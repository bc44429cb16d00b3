import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CommandError, EXIT } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import { replaceFile, stateFolder } from '../state-folder.ts';
import { type IdKind, LETTERS, lettersOf, SIGN } from './short-id.ts';

/** Markets that a file keeps, the last listed ones. */
const MAX_MARKETS = 2_000;

/** A market as a listing showed it. */
export interface KnownMarket {
  readonly venue: string;
  readonly id: string;
  readonly title: string;
  readonly outcomes: readonly { readonly id: string; readonly label: string }[];
}

/** A market or an outcome with its short id. */
export interface KnownId {
  readonly kind: IdKind;
  readonly venue: string;
  readonly id: string;
  /** For a person. */
  readonly name: string;
  readonly letters: string;
  readonly market: KnownMarket;
}

/** Short ids are shown in listings, and this file of one API is all that resolves them: it has the markets of the last listings. */
export class KnownIds {
  readonly #file: string;
  #markets: readonly KnownMarket[];
  /** By their first letters. */
  #ids = new Map<string, KnownId[]>();

  private constructor(file: string, markets: readonly KnownMarket[]) {
    this.#file = file;
    this.#markets = markets;
    this.#index();
  }

  /** @throws CommandError for a file that cannot be read */
  static async open(url: string, env: Io['env']): Promise<KnownIds> {
    const name = createHash('sha256').update(url.replace(/\/+$/, '')).digest('hex').slice(0, 16);
    const file = join(stateFolder(env), `short-ids-${name}.json`);
    return new KnownIds(file, await readMarkets(file));
  }

  /** Every known market and its outcomes, the last listing first. */
  get markets(): readonly KnownMarket[] {
    return this.#markets;
  }

  /** Keeps the markets of a listing. @throws CommandError when the file cannot be written */
  async keep(fresh: readonly KnownMarket[]): Promise<void> {
    const keyOf = ({ venue, id }: KnownMarket) => JSON.stringify([venue, id]);
    const keys = new Set(fresh.map(keyOf));
    // Another listing may have written since.
    const former = (await readMarkets(this.#file)).filter((market) => !keys.has(keyOf(market)));
    this.#markets = [...fresh, ...former].slice(0, MAX_MARKETS);
    this.#index();
    try {
      await replaceFile(this.#file, `${JSON.stringify({ markets: this.#markets })}\n`);
    } catch (error) {
      throw new CommandError(`cannot keep the short ids in ${this.#file}: ${(error as Error).message}`, EXIT.failed);
    }
  }

  /** The short id of a market or an outcome: as many letters as distinguish it from every known id. */
  shortIdOf(kind: IdKind, venue: string, id: string): string {
    const letters = lettersOf(kind, venue, id);
    const near = (this.#ids.get(letters.slice(0, LETTERS)) ?? []).filter((other) => other.letters !== letters);
    let length = LETTERS;
    while (near.some((other) => other.letters.startsWith(letters.slice(0, length)))) length += 1;
    return `${SIGN}${letters.slice(0, length)}`;
  }

  /** The known ids that a short id of at least seven letters may mean: none, one, or several. */
  find(text: string): readonly KnownId[] {
    const letters = text.slice(SIGN.length).toLowerCase();
    return (this.#ids.get(letters.slice(0, LETTERS)) ?? []).filter((known) => known.letters.startsWith(letters));
  }

  #index(): void {
    this.#ids = new Map();
    for (const market of this.#markets) {
      const { venue, id, title, outcomes } = market;
      this.#add({ kind: 'market', venue, id, name: title, market });
      for (const each of outcomes) {
        this.#add({ kind: 'outcome', venue, id: each.id, name: `${title}: ${each.label}`, market });
      }
    }
  }

  #add(known: Omit<KnownId, 'letters'>): void {
    const letters = lettersOf(known.kind, known.venue, known.id);
    const first = letters.slice(0, LETTERS);
    const near = this.#ids.get(first) ?? [];
    this.#ids.set(first, near);
    if (near.every((other) => other.letters !== letters)) near.push({ ...known, letters });
  }
}

async function readMarkets(file: string): Promise<KnownMarket[]> {
  try {
    const { markets } = JSON.parse(await readFile(file, 'utf8')) as { markets?: KnownMarket[] };
    if (!Array.isArray(markets)) throw new TypeError('it has no list of markets');
    return markets;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new CommandError(`cannot read the short ids in ${file}: ${(error as Error).message}`, EXIT.failed);
  }
}
