import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { diffTexts, type RulesState, rulesVersions } from '../../../../src/domain/markets/rules.ts';

const SPACES = fc.stringMatching(/^[ \t\n]{1,3}$/);
const WORDS = fc.array(fc.stringMatching(/^[a-c.,]{1,3}$/), { minLength: 1, maxLength: 30 });
const TEXT = fc.tuple(WORDS, SPACES).map(([words, space]) => words.join(space));

const state = (atMs: number, text: string | null, settlementSource?: string | null): RulesState => ({
  atMs,
  text,
  settlementSource,
});
const numbered = (...states: RulesState[]) =>
  rulesVersions(states).map(({ version, sinceMs, text, settlementSource }) => [
    version,
    sinceMs,
    text,
    settlementSource,
  ]);

const rulesHash = ({ text, settlementSource }: Pick<RulesState, 'text' | 'settlementSource'>) =>
  rulesVersions([state(0, text, settlementSource)])[0]?.hash;

describe('the hash of rules', () => {
  it('does not change when only white space moves', () => {
    fc.assert(
      fc.property(WORDS, SPACES, SPACES, (words, one, other) => {
        const hashed = (space: string, edge: string) =>
          rulesHash({ text: edge + words.join(space), settlementSource: words.join(space) + edge });
        expect(hashed(one, '')).toBe(hashed(other, one));
      }),
    );
  });

  it('is the sha256 of text and source when both are known, and of the text when the source is not', () => {
    expect(rulesHash({ text: 'a  b', settlementSource: '' })).toBe(
      'c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65',
    );
    expect(rulesHash({ text: 'a b ', settlementSource: 'c' })).toBe(
      '24b366cf6891c1a7ba83804c7632b71c9d86cf530908a052bf08d0e128602da8',
    );
  });

  it('differs when a word moves from the text to the source', () => {
    const hashes = [
      rulesHash({ text: 'a b', settlementSource: null }),
      rulesHash({ text: 'a', settlementSource: 'b' }),
      rulesHash({ text: '', settlementSource: 'a b' }),
    ];
    expect(new Set(hashes).size).toBe(3);
  });
});

describe('rulesVersions', () => {
  it('counts each change of text or source when words change', () => {
    expect(numbered(state(1, 'one', 'x'), state(2, 'two', 'x'), state(3, 'two', 'y'), state(4, 'one', 'x'))).toEqual([
      [1, 1, 'one', 'x'],
      [2, 2, 'two', 'x'],
      [3, 3, 'two', 'y'],
      [4, 4, 'one', 'x'],
    ]);
  });

  it('keeps the version with its last white space when only white space moves', () => {
    expect(numbered(state(1, 'one two', null), state(2, ' one\n two', null))).toEqual([[1, 1, ' one\n two', null]]);
  });

  it('counts no change when a text or a source is read for the first time', () => {
    expect(numbered(state(1, null, null), state(2, 'one', null), state(3, 'one', 'x'))).toEqual([[1, 2, 'one', 'x']]);
    expect(numbered(state(1, null, null))).toEqual([]);
  });

  it('counts a change when the venue removes a text or a source, and when it states one again', () => {
    expect(numbered(state(1, 'one', 'x'), state(2, 'one', null), state(3, null, null), state(4, 'one', null))).toEqual([
      [1, 1, 'one', 'x'],
      [2, 2, 'one', ''],
      [3, 3, '', ''],
      [4, 4, 'one', ''],
    ]);
  });

  it('keeps the source when a former release stored a state without it', () => {
    expect(numbered(state(1, 'one', 'x'), state(2, 'two'), state(3, 'two', 'x'))).toEqual([
      [1, 1, 'one', 'x'],
      [2, 2, 'two', 'x'],
    ]);
  });
});

describe('diffTexts', () => {
  const without = (op: string, parts: ReturnType<typeof diffTexts>) =>
    parts
      .filter((part) => part.op !== op)
      .map(({ text }) => text)
      .join('');

  it('reassembles both texts when either kind of change is left out', () => {
    fc.assert(
      fc.property(TEXT, TEXT, (from, to) => {
        const parts = diffTexts(from, to);
        expect([without('insert', parts), without('delete', parts)]).toEqual([from, to]);
      }),
    );
  });

  it('names whole words when a part of a word changes', () => {
    expect(diffTexts('The rate falls in March.', 'The rate falls in May.')).toEqual([
      { op: 'equal', text: 'The rate falls in ' },
      { op: 'delete', text: 'March' },
      { op: 'insert', text: 'May' },
      { op: 'equal', text: '.' },
    ]);
  });

  it('is one deletion and one insertion when the texts differ in too many words', () => {
    const words = (from: number) => Array.from({ length: 2_000 }, (_, index) => `w${from + index}`).join(' ');
    const [from, to] = [words(0), words(5_000)];
    expect(diffTexts(from, to)).toEqual([
      { op: 'delete', text: from },
      { op: 'insert', text: to },
    ]);
  });
});
