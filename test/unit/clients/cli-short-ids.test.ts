import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Arguments } from '../../../cli/arguments.ts';
import type { Call } from '../../../clients/cli/src/command.ts';
import { COMMANDS } from '../../../clients/cli/src/commands.ts';
import { KnownIds, type KnownMarket } from '../../../clients/cli/src/short-ids/known-ids.ts';
import { shortIdsOf } from '../../../clients/cli/src/short-ids/listed.ts';
import { LETTERS, lettersOf } from '../../../clients/cli/src/short-ids/short-id.ts';
import { hasShortIds, withWholeIds } from '../../../clients/cli/src/short-ids/whole-ids.ts';
import { oddswireCli } from '../../support/cli-io.ts';

const URL = 'http://127.0.0.1:9';
let folder: string;
const env = () => ({ XDG_STATE_HOME: folder });
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'oddswire-short-ids-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function aMarket(id: string, venue = 'kalshi'): KnownMarket {
  const outcomes = ['Yes', 'No'].map((label) => ({ id: `${id}:${label.toLowerCase()}`, label }));
  return { venue, id, title: `Title of ${id}`, outcomes };
}

async function knowing(...markets: KnownMarket[]): Promise<KnownIds> {
  const known = await KnownIds.open(URL, env());
  await known.keep(markets);
  return known;
}

function given(words: string[], texts: Record<string, string> = {}): Arguments {
  return { words, texts: new Map(Object.entries(texts)), flags: new Set(), problems: [] };
}

/** Two ids of markets whose short ids begin with the same seven letters: found by search. */
const SAME = ['m-120934', 'm-131818'] as const;

describe('short ids', () => {
  it('are the same on every machine, and differ for a market, an outcome and a venue', () => {
    const all = [
      lettersOf('market', 'kalshi', 'X'),
      lettersOf('outcome', 'kalshi', 'X'),
      lettersOf('market', 'manifold', 'X'),
    ];
    expect(lettersOf('market', 'kalshi', 'X')).toBe('1ud9oi70gdhaitdqef4uad1muc6i542kr8sb8ectk40v84age5ic');
    expect(new Set(all.map((letters) => letters.slice(0, LETTERS))).size).toBe(3);
  });

  it('become the ids of the venue in each command that takes ids, with the venue', async () => {
    const known = await knowing(aMarket('KX-1'), aMarket('0xabc', 'polymarket'));
    const market = known.shortIdOf('market', 'kalshi', 'KX-1');
    const outcome = known.shortIdOf('outcome', 'kalshi', 'KX-1:no');
    expect(market).toMatch(/^\+[0-9a-v]{7}$/);
    for (const [name, command] of Object.entries(COMMANDS)) {
      const { words, options = {} } = command.ids ?? {};
      const one = (kind: string) => (kind === 'market' ? market : outcome);
      const whole = (kind: string) => (kind === 'market' ? 'KX-1' : 'KX-1:no');
      const asked = given(
        words === undefined ? [] : [one(words)],
        Object.fromEntries(Object.entries(options).map(([option, kind]) => [option, one(kind)])),
      );
      expect([name, hasShortIds(command, asked)]).toEqual([name, command.ids !== undefined]);
      const { words: found, texts } = withWholeIds(command, asked, known);
      if (words !== undefined) expect([name, ...found]).toEqual([name, whole(words)]);
      for (const [option, kind] of Object.entries(options)) expect(texts.get(option)).toBe(whole(kind));
      const takesMarket = words === 'market' || Object.values(options).includes('market');
      expect([name, texts.get('venue')]).toEqual([
        name,
        takesMarket && 'venue' in command.options ? 'kalshi' : undefined,
      ]);
    }
  });

  it('are taken by every command whose forms name a market or an outcome', () => {
    const named = Object.entries(COMMANDS).filter(([, { forms }]) =>
      forms.some((form) => /\b(MARKET|OUTCOME|BUY_OUTCOME)\b/.test(form)),
    );
    expect(named.filter(([, { ids }]) => ids?.words === undefined).map(([name]) => name)).toEqual([]);
    const options = Object.entries(COMMANDS).flatMap(([name, command]) =>
      Object.keys(command.options)
        .filter((option) => ['market', 'outcome', 'sell'].includes(option))
        .map((option) => [name, option, command.ids?.options?.[option]] as const),
    );
    expect(options.length).toBeGreaterThan(6);
    expect(options.filter(([, , kind]) => kind === undefined)).toEqual([]);
  });

  it('leave whole ids and the words of a search alone', async () => {
    const known = await knowing(aMarket('KX-1'));
    const { prices, markets, watch } = COMMANDS;
    if (!prices || !markets || !watch) throw new TypeError('the commands exist');
    const short = known.shortIdOf('market', 'kalshi', 'KX-1');
    const mixed = withWholeIds(prices, given([short, '0xother']), known);
    expect([mixed.words, mixed.texts.get('venue')]).toEqual([['KX-1', '0xother'], undefined]);
    expect(hasShortIds(markets, given([short]))).toBe(false);
    expect(withWholeIds(watch, given([short], { market: `${short},0xother` }), known).words).toEqual([short]);
  });

  it('are an error that names the candidates when two known ids begin with the same letters', async () => {
    const known = await knowing(...SAME.map((id) => aMarket(id)));
    const [one, two] = SAME.map((id) => known.shortIdOf('market', 'kalshi', id));
    expect(one?.slice(0, LETTERS + 1)).toBe(two?.slice(0, LETTERS + 1));
    expect(one).not.toBe(two);
    const { market } = COMMANDS;
    if (!market) throw new TypeError('the command exists');
    expect(() => withWholeIds(market, given([one?.slice(0, LETTERS + 1) ?? '']), known)).toThrow(
      new RegExp(`may be one of these:\n +\\${one} +kalshi ${SAME[0]} +Title of ${SAME[0]}\n +\\${two} `),
    );
    expect(withWholeIds(market, given([two ?? '']), known).words).toEqual([SAME[1]]);
  });

  it('are an error when they are unknown, too short, of another kind, or of another venue', async () => {
    const known = await knowing(aMarket('KX-1'));
    const [market, outcome] = [
      known.shortIdOf('market', 'kalshi', 'KX-1'),
      known.shortIdOf('outcome', 'kalshi', 'KX-1:no'),
    ];
    const { book } = COMMANDS;
    if (!book) throw new TypeError('the command exists');
    const failing = (words: string[], texts?: Record<string, string>) => () =>
      withWholeIds(book, given(words, texts), known);
    expect(failing(['+0000000'])).toThrow('no listing on this machine showed +0000000');
    expect(failing([market.slice(0, 5)])).toThrow('is too short');
    expect(failing([outcome])).toThrow(`${outcome} is an outcome, and this takes a market:\n  ${market}  kalshi KX-1`);
    expect(failing([market], { outcome: market })).toThrow(`this takes an outcome:\n`);
    expect(failing([market], { venue: 'manifold' })).toThrow('a short id is of kalshi, not of --venue manifold');
  });

  it('end the program with 4 when they are unknown, and with 2 when they are too short', async () => {
    const settings = { ...env(), ODDSWIRE_URL: URL, ODDSWIRE_KEY: 'k' };
    const unknown = await oddswireCli(['book', '+0000000'], { env: settings });
    expect([unknown.code, unknown.stdout]).toEqual([4, '']);
    expect(unknown.stderr).toContain('list the market again with `markets`');
    expect((await oddswireCli(['book', '+00'], { env: settings })).code).toBe(2);
  });

  it('are kept for each API, the last listings first, and also those of a listing at the same time', async () => {
    const [one, two] = [await KnownIds.open(`${URL}/`, env()), await KnownIds.open(URL, env())];
    await one.keep([aMarket('A')]);
    await two.keep([aMarket('B')]);
    await one.keep([{ ...aMarket('A'), title: 'Renamed' }]);
    const { markets } = await KnownIds.open(URL, env());
    expect(markets.map(({ id, title }) => [id, title])).toEqual([
      ['A', 'Renamed'],
      ['B', 'Title of B'],
    ]);
    expect((await KnownIds.open('http://other', env())).markets).toEqual([]);
    await one.keep(Array.from({ length: 2_500 }, (_, at) => aMarket(`C${at}`)));
    expect((await KnownIds.open(URL, env())).markets).toHaveLength(2_000);
  });

  it('report a file that is not readable', async () => {
    await knowing(aMarket('A'));
    const [name = ''] = await readdir(join(folder, 'oddswire'));
    await writeFile(join(folder, 'oddswire', name), '{');
    await expect(KnownIds.open(URL, env())).rejects.toThrow('cannot read the short ids in');
    expect(await readFile(join(folder, 'oddswire', name), 'utf8')).toBe('{');
  });

  it('are left out of a listing, with a note, when their file is not readable', async () => {
    await knowing(aMarket('A'));
    const [name = ''] = await readdir(join(folder, 'oddswire'));
    for (const text of ['{', '{}']) {
      await writeFile(join(folder, 'oddswire', name), text);
      const notes: string[] = [];
      const call = { knownIds: () => KnownIds.open(URL, env()), note: async (note: string) => void notes.push(note) };
      const shortId = await shortIdsOf(call as unknown as Call, []);
      expect([shortId('market', 'kalshi', 'A'), notes]).toEqual(['', [expect.stringContaining('use whole ids')]]);
    }
  });

  it('are completed from the listings of the machine', async () => {
    const known = await knowing(aMarket('KX-1'));
    const { stdout } = await oddswireCli(['completion', 'ids'], {
      env: { ...env(), ODDSWIRE_URL: URL, ODDSWIRE_KEY: 'k' },
    });
    expect(stdout.split('\n')[0]).toBe(`${known.shortIdOf('market', 'kalshi', 'KX-1')}\tTitle of KX-1`);
    expect(stdout.trimEnd().split('\n')).toHaveLength(3);
  });
});
